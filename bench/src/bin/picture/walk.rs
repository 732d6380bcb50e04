//! A walk: what somebody does in patterm for the first time, step by step, as a page of the documents.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use patterm_screen::Size;

use crate::harness::Harness;
use crate::recorder::Recorder;
use crate::svg;

/// The window in which everything is done.
pub(crate) const SMALL: Size = Size { rows: 24, columns: 80 };

/// The window in which the same is looked at again.
pub(crate) const LARGE: Size = Size { rows: 50, columns: 200 };

/// The texts around the steps.
pub(crate) struct Story {
    /// The name of the recording, and of its files.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Who walks, and what for.
    pub(crate) intro: &'static str,
    /// What got in the way when this was first walked by hand, and what became of it.
    pub(crate) stumbles: &'static [&'static str],
}

/// A walk that is being recorded.
pub(crate) struct Walk {
    pub(crate) harness: Harness,
    pub(crate) person: Recorder,
    story: Story,
    page: String,
    steps: usize,
    /// The names and texts of the pictures.
    pictures: Vec<(String, String)>,
}

impl Walk {
    /// Begins in a shell in the project's folder.
    pub(crate) fn begin(story: Story, harness: Harness) -> anyhow::Result<Self> {
        let person = Recorder::start(harness.command("setsid"), "exec bash", SMALL)?;
        let page = format!(
            "# {}\n\n{}\n\n`scripts/picture {}` recorded this from a real run of unmodified patterm, in windows of 80×24 \
             and 200×50.\n",
            story.title, story.intro, story.name
        );
        let (steps, pictures) = (0, Vec::new());
        let mut walk = Self { harness, person, story, page, steps, pictures };
        walk.person.until("$")?;
        Ok(walk)
    }

    /// Types a command line and waits for a text in its output.
    pub(crate) fn run(&mut self, line: &str, until: &str) -> anyhow::Result<()> {
        self.person.write(&format!("{line}\r"))?;
        self.person.until(until)
    }

    /// A step, with the screen as text.
    pub(crate) fn step(&mut self, what: &str) -> anyhow::Result<()> {
        self.heading(what)?;
        write!(self.page, "\n```text\n{}\n```\n", self.person.text())?;
        Ok(())
    }

    /// A step, with a picture of the screen.
    pub(crate) fn picture(&mut self, what: &str) -> anyhow::Result<()> {
        let drawn = svg::draw(&self.person.screen);
        self.add_picture(what, drawn)
    }

    /// A step, with a picture of a large window that shows the same project.
    pub(crate) fn large_picture(&mut self, what: &str, until: &str) -> anyhow::Result<()> {
        let mut large = Recorder::start(self.harness.command("setsid"), "exec patterm", LARGE)?;
        large.until(until)?;
        large.pause(1_500)?;
        self.add_picture(what, svg::draw(&large.screen))
    }

    pub(crate) fn add_picture(&mut self, what: &str, drawn: String) -> anyhow::Result<()> {
        self.heading(what)?;
        let name = format!("{}-{}.svg", self.story.name, self.steps);
        write!(self.page, "\n![{}]({name})\n", what.replace('`', ""))?;
        self.pictures.push((name, drawn));
        Ok(())
    }

    fn heading(&mut self, what: &str) -> anyhow::Result<()> {
        self.steps += 1;
        write!(self.page, "\n## {}. {what}\n", self.steps)?;
        Ok(())
    }

    /// Writes the page and its pictures into the folder with the documents.
    pub(crate) fn write(mut self, docs: &Path) -> anyhow::Result<()> {
        self.page.push_str("\n## What got in the way\n\n");
        for stumble in self.story.stumbles {
            writeln!(self.page, "- {stumble}")?;
        }
        let home = self.harness.home().to_string_lossy().into_owned();
        let page = (format!("{}.md", self.story.name), self.page);
        for (name, text) in self.pictures.into_iter().chain([page]) {
            // The folder of the recording is somebody's home.
            let text = text.replace(&home, "/home/you");
            let path = docs.join("recordings").join(name);
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}
