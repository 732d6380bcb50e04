//! The text that a person reads before trusting a file: headings with labelled lines below them.

use std::fmt::Write;

/// A description under construction. Values from the file must be passed through
/// [`visible`](super::visible::visible) or [`command_line`](super::visible::command_line).
#[derive(Debug, Default)]
pub(super) struct Description {
    text: String,
}

impl Description {
    /// Begins a section.
    pub(super) fn heading(&mut self, heading: &str) {
        let _ = writeln!(self.text, "{heading}");
    }

    /// Adds a labelled line to the current section.
    pub(super) fn line(&mut self, label: &str, value: impl AsRef<str>) {
        let _ = writeln!(self.text, "  {label:<12} {}", value.as_ref());
    }

    /// Adds a line without a label to the current section.
    pub(super) fn plain(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {line}");
    }

    /// The whole text; `nothing` if it is empty.
    pub(super) fn finish(self) -> String {
        if self.text.is_empty() { "nothing\n".into() } else { self.text }
    }
}
