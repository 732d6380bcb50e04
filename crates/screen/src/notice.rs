//! What a program tells its terminal besides text: its folder, notifications, progress, marks
//! around prompts, the bell, the clipboard. All of it is text that a program chose: it is cleaned
//! of control characters, bounded, and only ever handed to whoever asks.

use std::collections::VecDeque;

use crate::title::clean;

/// Notices that may wait to be taken; older ones go first.
const MAX_QUEUED: usize = 256;

/// Longest text of a notice: more than a notification shows, enough for any path.
const TEXT_LIMIT: usize = 4 << 10;

/// Something that a program told its terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The bell rang.
    Bell,
    /// The title changed.
    Title(String),
    /// The folder it works in (OSC 7 or 9;9), as it said it: usually a `file:` URL.
    Folder(String),
    /// It asks for a notification (OSC 9 or 777).
    Notification {
        /// Title, where one was given.
        title: String,
        /// Text.
        body: String,
    },
    /// How far it is (OSC 9;4).
    Progress(ProgressReport),
    /// It wants to set the clipboard (OSC 52). Whether it may is for others to say; reading it is
    /// never answered.
    Clipboard {
        /// Which clipboards, as letters: `c`, `p`, `s` and so on.
        selection: String,
        /// What to put there.
        content: Vec<u8>,
    },
    /// A mark that shells put around prompts and commands (OSC 133).
    Mark(Mark),
}

/// How far a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressReport {
    /// Nothing to show.
    Off,
    /// So many percent.
    Percent(u8),
    /// Failed, at so many percent.
    Failed(u8),
    /// Busy; nobody knows how long.
    Busy,
    /// Paused, at so many percent.
    Paused(u8),
}

/// A mark around a prompt or a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A prompt begins.
    Prompt,
    /// What is typed begins.
    Input,
    /// A command's output begins.
    Output,
    /// A command ended, with its status where it was given.
    Done(Option<i32>),
}

/// Notices waiting to be taken.
#[derive(Debug, Default)]
pub(crate) struct Notices(VecDeque<Notice>);

impl Notices {
    pub(crate) fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.0).into()
    }

    pub(crate) fn push(&mut self, notice: Notice) {
        // Of things that say how it is now, only the last counts.
        let replaced = |old: &Notice| {
            let lasting = !matches!(notice, Notice::Notification { .. } | Notice::Mark(_));
            lasting && std::mem::discriminant(old) == std::mem::discriminant(&notice)
        };
        if let Some(old) = self.0.iter().position(replaced) {
            self.0.remove(old);
        }
        if self.0.len() == MAX_QUEUED {
            self.0.pop_front();
        }
        self.0.push_back(notice);
    }
}

/// What OSC 9 says.
pub(crate) fn osc_9(text: &[u8]) -> Option<Notice> {
    if let Some(folder) = text.strip_prefix(b"9;") {
        return Some(Notice::Folder(clean(folder, TEXT_LIMIT)));
    }
    if let Some(progress) = text.strip_prefix(b"4;").or((text == b"4").then_some(b"")) {
        return osc_9_4(progress).map(Notice::Progress);
    }
    // ConEmu's other commands begin with a number too; none is a notification.
    let mut parts = text.splitn(2, |&byte| byte == b';');
    let first = parts.next().unwrap_or_default();
    if parts.next().is_some() && first.len() <= 2 && first.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let body = clean(text, TEXT_LIMIT);
    (!body.is_empty()).then(|| Notice::Notification { title: String::new(), body })
}

fn osc_9_4(text: &[u8]) -> Option<ProgressReport> {
    let mut parts = text.split(|&byte| byte == b';');
    let state = number(parts.next()?)?;
    let percent = parts.next().and_then(number).unwrap_or(0).clamp(0, 100) as u8;
    Some(match state {
        0 => ProgressReport::Off,
        1 => ProgressReport::Percent(percent),
        2 => ProgressReport::Failed(percent),
        3 => ProgressReport::Busy,
        4 => ProgressReport::Paused(percent),
        _ => return None,
    })
}

/// What OSC 7 says.
pub(crate) fn osc_7(text: &[u8]) -> Option<Notice> {
    let folder = clean(text, TEXT_LIMIT);
    (!folder.is_empty()).then_some(Notice::Folder(folder))
}

/// What OSC 777 says.
pub(crate) fn osc_777(text: &[u8]) -> Option<Notice> {
    let text = text.strip_prefix(b"notify;")?;
    let mut parts = text.splitn(2, |&byte| byte == b';');
    let title = clean(parts.next()?, TEXT_LIMIT);
    let body = clean(parts.next().unwrap_or_default(), TEXT_LIMIT);
    Some(Notice::Notification { title, body })
}

/// What OSC 133 says.
pub(crate) fn osc_133(text: &[u8]) -> Option<Notice> {
    let mut parts = text.split(|&byte| byte == b';');
    Some(Notice::Mark(match parts.next()? {
        b"A" | b"N" => Mark::Prompt,
        b"B" | b"I" => Mark::Input,
        b"C" => Mark::Output,
        b"D" => Mark::Done(parts.next().and_then(number)),
        _ => return None,
    }))
}

/// What OSC 52 says; a question (`?`) is no notice and gets no answer.
pub(crate) fn osc_52(text: &[u8]) -> Option<Notice> {
    let mut parts = text.splitn(2, |&byte| byte == b';');
    let selection = clean(parts.next()?, 8);
    let content = decode_base64(parts.next()?)?;
    Some(Notice::Clipboard { selection, content })
}

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Decodes base64 in the usual alphabet or in that for URLs, padded or not; `None` if it is none.
#[must_use]
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits: u32 = 0;
        for &letter in group {
            bits = bits << 6 | u32::from(sextet(letter)?);
        }
        let [_, a, b, c] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        match group.len() {
            4 => bytes.extend([a, b, c]),
            3 => bytes.extend([a, b]),
            2 => bytes.push(a),
            _ => return None,
        }
    }
    Some(bytes)
}

fn sextet(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}
