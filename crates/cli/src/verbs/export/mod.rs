//! `patterm export`: what a process has shown, as a recording for asciinema, as text or as a page.

mod cast;
mod html;
mod target;
mod text;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use patterm_wire::recording::{
    self, RecordingBegun, RecordingForm, RecordingPart, RecordingRequest,
};

use super::at::At;
use super::recorded::RecordedParts;
use crate::client::Client;
use crate::print::warn;
use crate::since::local_time;
use cast::Cast;
use html::Html;
use target::Target;
use text::Text;

/// Write what a process has shown to a file
///
/// Composed from its screens, so that nothing else of what the program printed gets into the file: no titles, no writes
/// to the clipboard, and links only to the web. Without --from and --to, it is the whole current run.
#[derive(Debug, Args)]
pub(crate) struct ExportVerb {
    /// An id, a unique name, or a unique prefix of either
    #[arg(value_name = "ID")]
    process: String,
    /// Begin then: a time (09:12, 10m ago as 10m, 2026-11-16T09:12:03Z) or an offset in its output
    #[arg(long, value_name = "TIME|OFFSET")]
    from: Option<At>,
    /// End then
    #[arg(long, value_name = "TIME|OFFSET")]
    to: Option<At>,
    /// cast for asciinema, txt, or html [default: the ending of the file, or cast]
    #[arg(short, long, value_enum, hide_possible_values = true)]
    format: Option<ExportFormat>,
    /// The file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    Cast,
    Txt,
    Html,
}

impl ExportFormat {
    /// By the ending of a file's name.
    fn of(path: &Path) -> Option<Self> {
        Self::from_str(path.extension()?.to_str()?, true).ok()
    }

    fn form(self) -> RecordingForm {
        match self {
            Self::Cast => RecordingForm::Screens,
            Self::Txt | Self::Html => RecordingForm::Lines,
        }
    }

    fn writer(self, begun: &RecordingBegun) -> Box<dyn Exporter> {
        match self {
            Self::Cast => Box::new(Cast::new(begun)),
            Self::Txt => Box::new(Text),
            Self::Html => Box::new(Html::new(begun)),
        }
    }
}

/// Writes a recording in one format.
trait Exporter {
    /// What comes first.
    fn begin(&self) -> anyhow::Result<String>;
    /// A part.
    fn part(&mut self, part: &RecordingPart) -> anyhow::Result<String>;
    /// What comes last.
    fn end(&self) -> &'static str;
}

impl ExportVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let process_id = client.resolve(&self.process)?;
        drop(client);
        let by_name = || self.output.as_deref().and_then(ExportFormat::of);
        let format = self.format.or_else(by_name).unwrap_or(ExportFormat::Cast);
        let request = RecordingRequest {
            version: recording::VERSION,
            process_id,
            from: self.from.map(At::moment).transpose()?,
            to: self.to.map(At::moment).transpose()?,
            form: format.form(),
            window: None,
        };
        let mut recorded = RecordedParts::open(&request)?;
        let mut exporter = format.writer(&recorded.begun);
        let mut target = Target::open(self.output, self.force)?;
        warn_of_gone(&recorded.begun);
        let mut goes_on = target.write(&exporter.begin()?)?;
        let mut lost = 0;
        while let Some(part) = recorded.next()?.filter(|_| goes_on) {
            lost = part.lost;
            goes_on = target.write(&exporter.part(&part)?)?;
        }
        if goes_on {
            target.write(exporter.end())?;
        }
        if lost > 0 {
            warn(&format!(
                "{lost} bytes of output in between are lost: the log was full, or could not be stored"
            ));
        }
        target.finish()
    }
}

fn warn_of_gone(begun: &RecordingBegun) {
    if begun.gone > 0 {
        let time = begun.from_ms.map(local_time);
        let time =
            time.map_or_else(String::new, |time| time.format(" at %Y-%m-%d %H:%M:%S").to_string());
        warn(&format!(
            "the first {} bytes of its output are gone: the log has a limited size; this begins{time}, at offset {}",
            begun.gone, begun.from
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_file_is_a_format() {
        let format = |name: &str| ExportFormat::of(Path::new(name));
        assert_eq!(format("a/b.cast"), Some(ExportFormat::Cast));
        assert_eq!(format("x.HTML"), Some(ExportFormat::Html));
        assert_eq!(format("x.y.txt"), Some(ExportFormat::Txt));
        assert_eq!((format("cast"), format("x.gif")), (None, None));
    }
}
