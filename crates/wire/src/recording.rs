//! The recorded output of a process, composed from its screens. Such a connection is used for nothing else.

use serde::{Deserialize, Serialize};

use crate::method::Method;
use crate::tools::ScreenMoment;

/// The version of these values, which a client sends with its request.
pub const VERSION: u32 = 1;

/// Turns a connection into one that sends what a process has shown.
#[derive(Debug)]
pub enum ReadRecording {}

impl Method for ReadRecording {
    const NAME: &'static str = "patterm/recording";
    type Params = RecordingRequest;
    type Result = RecordingBegun;
}

/// What to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingRequest {
    /// [`VERSION`].
    pub version: u32,
    /// The process's id.
    pub process_id: String,
    /// Where to begin; by default at the first moment of the current run that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ScreenMoment>,
    /// Where to end; by default where the output ends now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ScreenMoment>,
    /// In which form.
    pub form: RecordingForm,
    /// The size of the terminal that is drawn on; by default that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<RecordedSize>,
}

/// The form of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingForm {
    /// [`RecordedScreen`]s.
    Screens,
    /// [`RecordedLine`]s.
    Lines,
}

/// A size in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSize {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub columns: u16,
}

/// The answer; [`RecordingPart`]s follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingBegun {
    /// [`VERSION`].
    pub version: u32,
    /// The name of the process.
    pub name: String,
    /// The size of the first screen.
    pub size: RecordedSize,
    /// The offset at which it begins.
    pub from: u64,
    /// The offset at which it ends.
    pub to: u64,
    /// When it begins, in milliseconds since 1970; unknown for output of patterm 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<u64>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_ms: Option<u64>,
    /// Bytes at the beginning of the run that are gone.
    #[serde(default)]
    pub gone: u64,
}

/// The notification with a [`RecordingPart`].
pub const PART: &str = "patterm/recording-part";

/// Some screens or lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingPart {
    /// Screens, each as a change of the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub screens: Vec<RecordedScreen>,
    /// Lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<RecordedLine>,
    /// Bytes of output up to now that are lost.
    #[serde(default)]
    pub lost: u64,
    /// There will be no more.
    #[serde(default)]
    pub done: bool,
}

/// A screen, as a change of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedScreen {
    /// The output before this offset is on it.
    pub offset: u64,
    /// When the last of it was printed, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// The terminal has another size than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<RecordedSize>,
    /// What to print on a terminal that shows the one before: text, colours and cursor movements, and nothing else.
    pub drawn: String,
}

/// A line, as it was shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLine {
    /// Its spans.
    pub spans: Vec<RecordedSpan>,
}

/// A span of text in one style.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSpan {
    /// The text.
    pub text: String,
    /// Its style.
    #[serde(flatten)]
    pub style: RecordedStyle,
}

/// A style.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStyle {
    /// The colour of the text, if it is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<RecordedColour>,
    /// The colour behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<RecordedColour>,
    /// Bold and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<RecordedAttribute>,
    /// Where it links to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedColour {
    /// One of the 256 of the palette.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// An attribute of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedAttribute {
    /// Bold.
    Bold,
    /// Faint.
    Dim,
    /// Italic.
    Italic,
    /// Underlined, in whatever way.
    Underline,
    /// Struck through.
    Strikeout,
    /// With a line above.
    Overline,
    /// Foreground and background exchanged.
    Inverse,
    /// Not shown.
    Hidden,
}
