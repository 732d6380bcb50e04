//! Plain text.

use patterm_wire::recording::RecordingPart;

use super::Exporter;

#[derive(Debug)]
pub(super) struct Text;

impl Exporter for Text {
    fn begin(&self) -> anyhow::Result<String> {
        Ok(String::new())
    }

    fn part(&mut self, part: &RecordingPart) -> anyhow::Result<String> {
        let mut text = String::new();
        for line in &part.lines {
            line.spans.iter().for_each(|span| text.push_str(&span.text));
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        }
        Ok(text)
    }

    fn end(&self) -> &'static str {
        ""
    }
}
