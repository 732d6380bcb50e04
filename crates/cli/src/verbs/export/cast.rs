//! A recording for asciinema: asciicast, version 2.

use patterm_wire::recording::{RecordedSize, RecordingBegun, RecordingPart};
use serde_json::json;

use super::Exporter;

#[derive(Debug)]
pub(super) struct Cast {
    name: String,
    size: RecordedSize,
    begin_ms: Option<u64>,
    /// Milliseconds from the beginning to the last event.
    passed_ms: u64,
}

impl Cast {
    pub(super) fn new(begun: &RecordingBegun) -> Self {
        let RecordingBegun { name, size, from_ms, .. } = begun.clone();
        Self { name, size, begin_ms: from_ms, passed_ms: 0 }
    }

    /// Seconds from the beginning to a time. They do not decrease.
    fn passed(&mut self, time_ms: Option<u64>) -> f64 {
        if let (Some(begin), Some(time)) = (self.begin_ms, time_ms) {
            self.passed_ms = self.passed_ms.max(time.saturating_sub(begin));
        }
        self.passed_ms as f64 / 1_000.0
    }
}

impl Exporter for Cast {
    fn begin(&self) -> anyhow::Result<String> {
        let RecordedSize { rows, columns } = self.size;
        let mut header =
            json!({"version": 2, "width": columns, "height": rows, "title": self.name});
        if let Some(begin) = self.begin_ms {
            header["timestamp"] = (begin / 1_000).into();
        }
        Ok(format!("{header}\n"))
    }

    fn part(&mut self, part: &RecordingPart) -> anyhow::Result<String> {
        let mut text = String::new();
        for screen in &part.screens {
            let passed = self.passed(screen.time_ms);
            if let Some(RecordedSize { rows, columns }) = screen.size {
                text += &format!("{}\n", json!([passed, "r", format!("{columns}x{rows}")]));
            }
            if !screen.drawn.is_empty() {
                text += &format!("{}\n", json!([passed, "o", screen.drawn]));
            }
        }
        Ok(text)
    }

    fn end(&self) -> &'static str {
        ""
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::recording::{self, RecordedScreen};

    use super::*;

    #[test]
    fn events_have_the_time_since_the_beginning() {
        let size = RecordedSize { rows: 24, columns: 80 };
        let begun = RecordingBegun {
            version: recording::VERSION,
            name: "a \"name\"\x1b".into(),
            size,
            from: 0,
            to: 9,
            from_ms: Some(10_500),
            to_ms: None,
            gone: 0,
        };
        let mut cast = Cast::new(&begun);
        let header: serde_json::Value = serde_json::from_str(&cast.begin().unwrap()).unwrap();
        let expected = json!({
            "version": 2, "width": 80, "height": 24, "timestamp": 10, "title": "a \"name\"\x1b"
        });
        assert_eq!(header, expected);
        let screen = |time_ms, size, drawn: &str| RecordedScreen {
            offset: 0,
            time_ms,
            size,
            drawn: drawn.into(),
        };
        let screens = vec![
            screen(Some(10_000), None, "a\x1b[m\u{9b}é"),
            screen(Some(12_750), Some(size), "b"),
            screen(None, None, "c"),
            // The clock was set back.
            screen(Some(11_000), Some(size), ""),
        ];
        let part = RecordingPart { screens, ..RecordingPart::default() };
        let text = cast.part(&part).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let expected = [
            "[0.0,\"o\",\"a\\u001b[m\u{9b}é\"]",
            "[2.25,\"r\",\"80x24\"]",
            "[2.25,\"o\",\"b\"]",
            "[2.25,\"o\",\"c\"]",
            "[2.25,\"r\",\"80x24\"]",
        ];
        assert_eq!(lines, expected);
    }
}
