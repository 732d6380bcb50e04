//! `patterm`: the one binary. It reads the arguments and hands over to the verb.

mod args;
mod attach;
mod client;
mod connect;
mod doctor;
mod hook;
mod identity;
mod init;
mod kill;
mod ls;
mod mcp_stdio;
mod overview;
mod pads;
mod papers;
mod restore;
mod said;
mod serve;
mod servers;
mod setup;
mod start;
mod timers;
mod token;
mod toml_string;
mod trust;
mod tui;
mod upgrade;
mod verbs;
mod words;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Keeper, Verb};
use patterm_keeper::KeeperOptions;
use said::complain;

fn main() -> ExitCode {
    let Arguments { verb } = Arguments::parse();
    let outcome = match verb {
        Some(Verb::McpStdio(options)) => return mcp_stdio::run(options),
        Some(Verb::Serve(options)) => serve::run(&options),
        Some(Verb::Keeper(Keeper { socket, server })) => {
            patterm_keeper::run(KeeperOptions { socket, server }).map_err(Into::into)
        }
        Some(Verb::Kill(options)) => kill::run(&options),
        Some(Verb::Upgrade) => upgrade::run(),
        Some(Verb::Ls(options)) => ls::run(&options),
        Some(Verb::Hook(options)) => {
            hook::run(&options);
            Ok(())
        }
        Some(Verb::Agent(options)) => verbs::agent(&options),
        Some(Verb::Agents(options)) => verbs::agents(&options),
        Some(Verb::Message(options)) => verbs::message(&options),
        Some(Verb::Run(options)) => verbs::run(&options),
        Some(Verb::Shell(options)) => verbs::shell(&options),
        Some(Verb::Ps(options)) => verbs::ps(&options),
        Some(Verb::Status(options)) => verbs::status(&options),
        Some(Verb::Logs(options)) => verbs::logs(&options),
        Some(Verb::Screen(options)) => verbs::screen(&options),
        Some(Verb::Search(options)) => verbs::search(&options),
        Some(Verb::Wait(options)) => verbs::wait(&options),
        Some(Verb::Send(options)) => verbs::send(&options),
        Some(Verb::Key(options)) => verbs::key(&options),
        Some(Verb::Stop(options)) => verbs::stop(&options),
        Some(Verb::Restart(options)) => verbs::restart(&options),
        Some(Verb::Restore(options)) => restore::run(options.json),
        Some(Verb::Close(options)) => verbs::close(&options),
        Some(Verb::Attach(options)) => attach::run(&options),
        Some(Verb::Timers(options)) => timers::run(&options),
        Some(Verb::Pads(options)) => pads::list(&options),
        Some(Verb::Pad(options)) => pads::one(&options),
        Some(Verb::Servers(options)) => servers::run(&options),
        Some(Verb::Call(options)) => verbs::call(&options),
        Some(Verb::Init) => init::run(),
        Some(Verb::Trust(options)) => trust::run(&options),
        Some(Verb::Token(deed)) => token::run(&deed),
        Some(Verb::Doctor(options)) => doctor::run(&options),
        Some(Verb::Setup(options)) => setup::run(&options),
        Some(Verb::Schema) => papers::schema(),
        Some(Verb::Completions(options)) => papers::completions(&options),
        Some(Verb::Man(options)) => papers::man(&options),
        None => overview::run(),
    };
    match outcome.and_then(|()| said::all()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}
