//! The events of all classes in the order of their numbers, read from the files.

use std::collections::VecDeque;
use std::io;

use crate::error::EventError;
use crate::line::{self, StoredEvent};
use crate::segment::Segment;

/// Events from a number on.
#[derive(Debug)]
pub(crate) struct Merged {
    classes: Vec<ClassCursor>,
}

/// What comes next in the files of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// An event.
    Event(StoredEvent),
    /// A line that is damaged, in this file at this place.
    Damaged(String, usize),
}

#[derive(Debug)]
struct ClassCursor {
    segments: VecDeque<Segment>,
    /// The content of the current file, and how far it was read.
    bytes: Vec<u8>,
    at: usize,
    file: String,
    next: Option<Piece>,
    /// Events before this number are not wanted.
    since: u64,
    /// The number of the last event.
    before: u64,
}

impl Merged {
    /// The files of each class, and the first number that is wanted.
    pub(crate) fn new(classes: Vec<Vec<Segment>>, since: u64) -> Result<Self, EventError> {
        let classes = classes.into_iter().map(|segments| ClassCursor::new(segments, since));
        Ok(Self { classes: classes.collect::<Result<_, _>>()? })
    }

    /// The next event, and the index of its class. A damaged line comes right after the event that precedes it in its
    /// class.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Piece)>, EventError> {
        let key = |cursor: &ClassCursor| match &cursor.next {
            Some(Piece::Event(event)) => Some(event.seq),
            Some(Piece::Damaged(..)) => Some(cursor.before),
            None => None,
        };
        let keys =
            self.classes.iter().enumerate().filter_map(|(at, cursor)| Some((key(cursor)?, at)));
        let Some((_, at)) = keys.min() else { return Ok(None) };
        let cursor = &mut self.classes[at];
        let piece = cursor.next.take();
        cursor.advance()?;
        Ok(piece.map(|piece| (at, piece)))
    }
}

impl ClassCursor {
    fn new(segments: Vec<Segment>, since: u64) -> Result<Self, EventError> {
        let mut segments = VecDeque::from(segments);
        // A file is not needed if the next one begins with or before what is wanted.
        while segments.get(1).is_some_and(|following| following.first <= since) {
            segments.pop_front();
        }
        let mut cursor = Self {
            segments,
            bytes: Vec::new(),
            at: 0,
            file: String::new(),
            next: None,
            since,
            before: 0,
        };
        cursor.advance()?;
        Ok(cursor)
    }

    fn advance(&mut self) -> Result<(), EventError> {
        self.next = loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(length) = memchr::memchr(b'\n', rest) else {
                if !self.load()? {
                    break None;
                }
                continue;
            };
            let (start, text) = (self.at, &rest[..length]);
            self.at += length + 1;
            if line::seq_of(text).is_some_and(|seq| seq < self.since) {
                continue;
            }
            match line::decode(text) {
                Some(event) => {
                    self.before = event.seq;
                    break Some(Piece::Event(event));
                }
                None => break Some(Piece::Damaged(self.file.clone(), start)),
            }
        };
        Ok(())
    }

    /// Reads the next file; `false` after the last one. A file that was dropped in the meantime counts as empty.
    fn load(&mut self) -> Result<bool, EventError> {
        let Some(segment) = self.segments.pop_front() else { return Ok(false) };
        self.bytes = match segment.read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(EventError::Read { path: segment.path, source }),
        };
        self.at = 0;
        self.file = segment.path.display().to_string();
        Ok(true)
    }
}
