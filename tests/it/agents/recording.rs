//! A readable transcript of a test, written where `PATTERM_RECORD` says.

use std::fmt::Write as _;

use serde_json::json;

use super::bench::Bench;

/// What happened, as Markdown.
pub(super) struct Recording {
    text: String,
    steps: usize,
}

impl Recording {
    pub(super) fn new(title: &str) -> Self {
        let about = "A test recorded this from real CLIs with a scripted model; the screens are shown \
            as patterm sees them.";
        Self { text: format!("# {title}\n\n{about}\n"), steps: 0 }
    }

    pub(super) fn step(&mut self, what: &str) {
        self.steps += 1;
        write!(self.text, "\n## {}. {what}\n", self.steps).unwrap();
    }

    pub(super) fn text(&mut self, what: &str, text: &str) {
        write!(self.text, "\n{what}:\n\n```text\n{}\n```\n", text.trim_end()).unwrap();
    }

    /// The results of the tools.
    pub(super) fn results(&mut self, results: &[String]) {
        let lines: Vec<_> = results.iter().map(|result| result.replace('\n', " ")).collect();
        self.text("Tool results", &lines.join("\n"));
    }

    /// All processes, each below the one that started it.
    pub(super) fn tree(&mut self, bench: &mut Bench) {
        let listed = bench.tools.ok("list_processes", json!({}))["processes"].take();
        let mut lines = String::new();
        for process in listed.as_array().unwrap() {
            let text = |name: &str| process[name].as_str().unwrap_or_default().to_owned();
            let indent = if process["parent_id"].is_null() { "" } else { "  └ " };
            let state = process["activity"]["state"].as_str().unwrap();
            let (id, name, preset) = (text("process_id"), text("name"), text("preset"));
            writeln!(lines, "{indent}{id} {name} ({preset}): {state}").unwrap();
        }
        self.text("Processes", &lines);
    }

    pub(super) fn screen(&mut self, bench: &mut Bench, id: &str, who: &str) {
        let screen = bench.tools.rows(id).join("\n");
        let here = bench.place.project().root().to_str().unwrap().to_owned();
        self.text(&format!("The screen of {who}"), &screen.replace(&here, "~/project"));
    }

    pub(super) fn write(self) {
        if let Some(path) = std::env::var_os("PATTERM_RECORD") {
            std::fs::write(path, self.text).unwrap();
        }
    }
}
