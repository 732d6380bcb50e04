//! What a process has shown, as screens or as lines, in parts that a client reads at its own pace.

mod lines;

use std::sync::Arc;

use patterm_panes::Offset;
use patterm_panes::data_plane::{ProcessRun, Recording};
use patterm_screen::{Drawing, Size};
use patterm_wire::recording::{
    RecordedScreen, RecordedSize, RecordingForm, RecordingPart, RecordingRequest,
};

use lines::Lines;

/// What a part has at most, apart from its last screen or lines.
const PART_BYTES: usize = 128 << 10;

/// What each screen or line costs besides its text.
const COST: usize = 64;

/// Output that is parsed for one part: the next one begins on the same thread, or on another.
const PART_OUTPUT: u64 = 4 << 20;

/// A recording that is being read.
#[derive(Debug)]
pub(crate) struct Recorded {
    recording: Recording,
    form: Form,
    is_begun: bool,
}

#[derive(Debug)]
enum Form {
    Screens { drawing: Drawing, size: RecordedSize },
    Lines(Lines),
}

impl Recorded {
    /// `None` if the output that the first screen needs is gone.
    pub(crate) fn new(
        run: &Arc<ProcessRun>,
        begin: Offset,
        (from, to): (Offset, Offset),
        request: &RecordingRequest,
    ) -> Option<Self> {
        let recording = run.recording(begin, from, to)?;
        let form = match request.form {
            RecordingForm::Screens => {
                let window = request.window.map(|size| Size::new(size.rows, size.columns));
                let drawing = window.map_or_else(Drawing::new, Drawing::within);
                Form::Screens { drawing, size: size_of(&recording) }
            }
            RecordingForm::Lines => Form::Lines(Lines::after(recording.screen())),
        };
        Some(Self { recording, form, is_begun: false })
    }

    /// The size of its screen.
    pub(crate) fn size(&self) -> RecordedSize {
        size_of(&self.recording)
    }

    /// The time of its screen.
    pub(crate) fn time_ms(&self) -> Option<u64> {
        self.recording.time_ms()
    }

    /// What comes next.
    pub(crate) fn next_part(&mut self) -> RecordingPart {
        let mut part = RecordingPart::default();
        let (mut bytes, most) = (0, self.recording.offset().saturating_add(PART_OUTPUT));
        while bytes < PART_BYTES && self.recording.offset() < most && !part.done {
            // The first screen is one, too.
            part.done = std::mem::replace(&mut self.is_begun, true) && !self.recording.advance();
            bytes += match &mut self.form {
                Form::Screens { drawing, size } => {
                    self.recording.drop_history();
                    draw(&self.recording, drawing, size, &mut part)
                }
                Form::Lines(lines) => {
                    let rows = match part.done {
                        true => self.recording.screen().all_rows(),
                        false => self.recording.take_history(),
                    };
                    lines.add(rows, part.done, &mut part.lines)
                }
            };
        }
        part.lost = self.recording.lost();
        part
    }
}

fn size_of(recording: &Recording) -> RecordedSize {
    let size = recording.screen().size();
    RecordedSize { rows: size.rows, columns: size.columns }
}

/// Adds the screen, if it looks different; returns what it costs.
fn draw(
    recording: &Recording,
    drawing: &mut Drawing,
    size: &mut RecordedSize,
    part: &mut RecordingPart,
) -> usize {
    let now = size_of(recording);
    let resized = std::mem::replace(size, now) != now;
    let drawn = drawing.update(recording.screen());
    if drawn.is_empty() && !resized {
        return 0;
    }
    let cost = drawn.len() + COST;
    part.screens.push(RecordedScreen {
        offset: recording.offset(),
        time_ms: recording.time_ms(),
        size: resized.then_some(now),
        drawn,
    });
    cost
}
