//! Records the picture and the session in the documents from a real run of patterm, with real agents'
//! CLIs and a scripted model. `scripts/picture` starts it.

mod harness;
mod recorder;
mod shapes;
mod svg;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use patterm_screen::Size;

use harness::Harness;
use recorder::Recorder;

/// The window.
const SIZE: Size = Size { rows: 34, columns: 124 };

/// The prompt for Claude.
const PROMPT: &str = "Invoices are off by a cent. Fix it, and have it reviewed.";

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let clients = arguments.next().context("first argument: the folder with the agents' CLIs")?;
    let docs = arguments.next().context("second argument: the folder with the documents")?;
    let harness = Harness::new(&clients)?;
    let person = Recorder::start(harness.command("setsid"), "exec bash", SIZE)?;
    let mut tour = Tour { person, frames: Vec::new(), picture: String::new() };
    let taken = tour.take();
    if let Err(why) = taken {
        anyhow::bail!("{why:#}\n{}", tour.person.text());
    }
    tour.write(&docs, &harness)
}

/// The recorded session.
struct Tour {
    person: Recorder,
    /// Heading and screen of each frame.
    frames: Vec<(String, String)>,
    picture: String,
}

impl Tour {
    fn take(&mut self) -> anyhow::Result<()> {
        self.begin()?;
        self.team()?;
        self.attention()?;
        self.leave()
    }

    /// The first start, and an agent from the list.
    fn begin(&mut self) -> anyhow::Result<()> {
        self.person.until("$")?;
        self.person.write("patterm\r")?;
        self.person.until("ctrl+b: keys")?;
        self.person.pause(800)?;
        self.frame("`patterm` in a project where nothing is running yet.");
        self.person.lead("a")?;
        self.person.until("● Claude Code")?;
        self.person.pause(800)?;
        self.frame("`ctrl+b a`: the agents that can be started here.");
        self.person.write("\r")?;
        self.person.until("to do first")?;
        self.person.write(PROMPT)?;
        self.person.pause(500)?;
        self.person.write("\r")?;
        Ok(())
    }

    /// A shell, from which a server and the tests are started; then all side by side.
    fn team(&mut self) -> anyhow::Result<()> {
        self.person.until("checker")?;
        self.person.lead("c")?;
        self.person.until("~/shop $")?;
        self.person.write("patterm run --name dev -- npm run dev\r")?;
        self.person.write("patterm run --name tests -- npm test\r")?;
        self.person.until("tests")?;
        self.person.lead("1")?;
        self.person.lead("|")?;
        self.person.lead("-")?;
        self.person.lead("5")?;
        self.person.until("do not drift")?;
        self.person.lead("o")?;
        Ok(())
    }

    fn attention(&mut self) -> anyhow::Result<()> {
        self.person.until("◆ blocked")?;
        self.person.pause(1_000)?;
        self.picture = svg::draw(&self.person.screen);
        self.frame("Three panes. Codex, started by Claude, asks for permission to push.");
        self.person.lead("!")?;
        self.person.pause(800)?;
        self.person.write("\r")?;
        self.person.pause(800)?;
        self.person.write("\r")?;
        self.person.until("Nothing is left to do")?;
        self.frame("`ctrl+b !` jumps to the agent that needs you; enter approves, and Claude gets the result.");
        Ok(())
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.person.lead(":")?;
        self.person.write("deta")?;
        self.person.pause(800)?;
        self.frame("`ctrl+b :` finds any action by typing.");
        self.person.write("\r")?;
        self.person.until("what runs goes on")?;
        self.person.write("patterm ps\r")?;
        self.person.pause(1_500)?;
        self.frame("Detached. Everything keeps running.");
        self.person.write("patterm\r")?;
        self.person.until("ctrl+b: keys")?;
        self.person.pause(1_500)?;
        self.frame("`patterm` again: everything is still running.");
        Ok(())
    }

    fn frame(&mut self, what: &str) {
        self.frames.push((what.to_owned(), self.person.text()));
    }

    fn write(self, docs: &Path, harness: &Harness) -> anyhow::Result<()> {
        let mut page = "# A few minutes in patterm\n\n\
            `scripts/picture` recorded this from a real run of unmodified patterm, Claude Code and Codex with a\n\
            scripted model. `asciinema play docs/recordings/tui.cast` plays it.\n"
            .to_owned();
        for (number, (what, shown)) in self.frames.iter().enumerate() {
            write!(page, "\n## {}. {what}\n\n```text\n{shown}\n```\n", number + 1)?;
        }
        let cast = self.person.cast();
        let here = harness.home().to_string_lossy().into_owned();
        for (name, text) in [
            ("picture.svg", self.picture),
            ("recordings/tui.cast", cast),
            ("recordings/tui.md", page),
        ] {
            anyhow::ensure!(!text.contains(&here), "{name} names {here}");
            std::fs::write(docs.join(name), text)?;
        }
        Ok(())
    }
}
