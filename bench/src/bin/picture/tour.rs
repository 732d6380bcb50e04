//! The README's picture and the session in docs/recordings/tui.*.

use std::fmt::Write as _;
use std::path::Path;

use patterm_screen::Size;

use crate::harness::Harness;
use crate::recorder::Recorder;
use crate::svg;

/// The window.
const SIZE: Size = Size { rows: 34, columns: 124 };

/// The prompt for Claude.
const PROMPT: &str = "Invoices are off by a cent. Fix it, and have it reviewed.";

/// Records the session and writes it into the folder with the documents.
pub(crate) fn record(clients: &Path, docs: &Path) -> anyhow::Result<()> {
    let harness = Harness::with_agents("shop", clients)?;
    let person = Recorder::start(harness.command("setsid"), "exec bash", SIZE)?;
    let mut tour = Tour { person, frames: Vec::new(), picture: String::new() };
    let taken = tour.take();
    if let Err(why) = taken {
        anyhow::bail!("{why:#}\n{}", tour.person.text());
    }
    tour.write(docs, &harness)
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
        self.person.until("first prompt for")?;
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
        // The first function key: the process with the number 1.
        self.person.lead("\x1bOP")?;
        self.person.lead("|")?;
        self.person.write("2\r")?;
        self.person.lead("-")?;
        self.person.write("5\r")?;
        self.person.until("do not drift")?;
        self.person.lead("o")?;
        Ok(())
    }

    fn attention(&mut self) -> anyhow::Result<()> {
        self.person.until("◆ blocked")?;
        self.person.pause(1_000)?;
        self.picture = svg::draw(&self.person.screen);
        self.frame("Three panes. Codex, started by Claude, asks for permission to push.");
        self.person.lead("u")?;
        self.person.pause(800)?;
        self.person.write("\r")?;
        self.person.pause(800)?;
        self.person.write("\r")?;
        self.person.until("Nothing is left to do")?;
        self.frame("`ctrl+b u` lists the agents that need you, enter goes there; enter again approves, and Claude gets the result.");
        Ok(())
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.person.lead(":")?;
        self.person.write("deta")?;
        self.person.pause(800)?;
        self.frame("`ctrl+b :` finds any action by typing.");
        self.person.write("\r")?;
        self.person.until("detached; everything keeps running")?;
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
