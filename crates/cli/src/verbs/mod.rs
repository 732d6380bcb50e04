//! The verbs: one file each, with its arguments and what it does. A new verb is a new file and its lines here.

mod agent;
mod agents;
mod at;
mod attach;
mod blame;
mod call;
mod close;
mod complete;
/// The example in CONTRIBUTING.md.
#[cfg(test)]
#[path = "../../../../docs/examples/count_timers.rs"]
mod contributing_example;
mod digest;
mod doctor;
mod environment;
mod events;
mod export;
mod generate;
mod help;
mod hook;
mod hooks;
mod init;
mod keeper;
mod key;
mod kill;
mod logs;
mod ls;
mod message;
mod messages;
mod overview;
mod pads;
mod ps;
mod recorded;
mod replay;
mod restart;
mod restore;
mod run;
mod screen;
mod search;
mod send;
mod serve;
mod servers;
mod setup;
mod several;
mod shell;
mod spawn;
mod start;
mod status;
mod stop;
mod terminal;
mod timers;
mod token;
mod trust;
mod up;
mod upgrade;
mod user_settings;
mod wait;

use std::process::ExitCode;

use clap::Subcommand;

use crate::mcp_stdio::McpStdioVerb;

pub(crate) use help::parse;

/// The verbs as `patterm --help` lists them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["run", "agent", "shell", "up", "attach"]),
    (
        "Look",
        &[
            "overview", "ps", "status", "logs", "screen", "search", "wait", "agents", "messages",
            "timers", "events", "digest", "replay", "export", "hooks", "blame",
        ],
    ),
    ("Act", &["send", "key", "message", "start", "stop", "restart", "close", "down", "restore"]),
    ("Share", &["pads", "pad", "servers", "token"]),
    ("Set up", &["init", "trust", "schema", "doctor", "setup", "completions", "man"]),
    ("Server", &["serve", "ls", "upgrade", "kill"]),
    ("Programs", &["call", "mcp-stdio"]),
];

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Agent(agent::AgentVerb),
    Agents(agents::AgentsVerb),
    Attach(attach::AttachVerb),
    Blame(blame::BlameVerb),
    Call(call::CallVerb),
    Close(close::CloseVerb),
    Complete(complete::CompleteVerb),
    Completions(generate::CompletionsVerb),
    Digest(digest::DigestVerb),
    Doctor(doctor::DoctorVerb),
    Down(up::DownVerb),
    Events(events::EventsVerb),
    Export(export::ExportVerb),
    Hook(hook::HookVerb),
    Hooks(hooks::HooksVerb),
    Init(init::InitVerb),
    Keeper(keeper::KeeperVerb),
    Key(key::KeyVerb),
    Kill(kill::KillVerb),
    Logs(logs::LogsVerb),
    Ls(ls::LsVerb),
    Man(generate::ManVerb),
    McpStdio(McpStdioVerb),
    Message(message::MessageVerb),
    Messages(messages::MessagesVerb),
    Overview(overview::OverviewVerb),
    Pad(pads::PadVerb),
    Pads(pads::PadsVerb),
    Ps(ps::PsVerb),
    Replay(replay::ReplayVerb),
    Restart(restart::RestartVerb),
    Restore(restore::RestoreVerb),
    Run(run::RunVerb),
    Schema(generate::SchemaVerb),
    Screen(screen::ScreenVerb),
    Search(search::SearchVerb),
    Send(send::SendVerb),
    Serve(serve::ServeVerb),
    Servers(servers::ServersVerb),
    Setup(setup::SetupVerb),
    Shell(shell::ShellVerb),
    Start(start::StartVerb),
    Status(status::StatusVerb),
    Stop(stop::StopVerb),
    Timers(timers::TimersVerb),
    Token(token::TokenVerb),
    Trust(trust::TrustVerb),
    Up(up::UpVerb),
    Upgrade(upgrade::UpgradeVerb),
    Wait(wait::WaitVerb),
}

impl Verb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Agent(verb) => verb.run(),
            Self::Agents(verb) => verb.run(),
            Self::Attach(verb) => verb.run(),
            Self::Blame(verb) => verb.run(),
            Self::Call(verb) => verb.run(),
            Self::Close(verb) => verb.run(),
            Self::Complete(verb) => verb.run(),
            Self::Completions(verb) => verb.run(),
            Self::Digest(verb) => verb.run(),
            Self::Doctor(verb) => verb.run(),
            Self::Down(verb) => verb.run(),
            Self::Events(verb) => verb.run(),
            Self::Export(verb) => verb.run(),
            Self::Hook(verb) => verb.run(),
            Self::Hooks(verb) => verb.run(),
            Self::Init(verb) => verb.run(),
            Self::Keeper(verb) => verb.run(),
            Self::Key(verb) => verb.run(),
            Self::Kill(verb) => verb.run(),
            Self::Logs(verb) => verb.run(),
            Self::Ls(verb) => verb.run(),
            Self::Man(verb) => verb.run(),
            // Its exit code says whether the server accepted the caller.
            Self::McpStdio(verb) => return verb.run(),
            Self::Message(verb) => verb.run(),
            Self::Messages(verb) => verb.run(),
            Self::Overview(verb) => verb.run(),
            Self::Pad(verb) => verb.run(),
            Self::Pads(verb) => verb.run(),
            Self::Ps(verb) => verb.run(),
            Self::Replay(verb) => verb.run(),
            Self::Restart(verb) => verb.run(),
            Self::Restore(verb) => verb.run(),
            Self::Run(verb) => verb.run(),
            Self::Schema(verb) => verb.run(),
            Self::Screen(verb) => verb.run(),
            Self::Search(verb) => verb.run(),
            Self::Send(verb) => verb.run(),
            Self::Serve(verb) => verb.run(),
            Self::Servers(verb) => verb.run(),
            Self::Setup(verb) => verb.run(),
            Self::Shell(verb) => verb.run(),
            Self::Start(verb) => verb.run(),
            Self::Status(verb) => verb.run(),
            Self::Stop(verb) => verb.run(),
            Self::Timers(verb) => verb.run(),
            Self::Token(verb) => verb.run(),
            Self::Trust(verb) => verb.run(),
            // Its exit code says whether everything became ready.
            Self::Up(verb) => return verb.run(),
            Self::Upgrade(verb) => verb.run(),
            // Its exit code says how the wait ended.
            Self::Wait(verb) => return verb.run(),
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    use super::contributing_example::CountTimersVerb;

    #[test]
    fn the_example_verb_has_valid_arguments() {
        let command = CountTimersVerb::augment_args(clap::Command::new("count-timers"));
        command.clone().debug_assert();
        assert!(command.try_get_matches_from(["count-timers", "--owner", "p1"]).is_ok());
        let _: fn(CountTimersVerb) -> anyhow::Result<()> = CountTimersVerb::run;
    }
}
