//! A stream of events, taken apart as its bytes come: what stands in their data, and the last id.

/// The events of one stream.
#[derive(Debug)]
pub(crate) struct EventReader {
    limit: usize,
    id: Option<Vec<u8>>,
    line: Vec<u8>,
    data: Vec<u8>,
}

/// An event is longer than one may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl EventReader {
    /// For events of at most so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, id: None, line: Vec::new(), data: Vec::new() }
    }

    /// The id that came last, if one came since this was asked.
    pub(crate) fn take_id(&mut self) -> Option<Vec<u8>> {
        self.id.take()
    }

    /// Takes bytes up to the end of the next event that says something; `None` if there is no such end
    /// among them.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, TooLong> {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            *bytes = rest;
            if self.line.len() + part.len() + self.data.len() > self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            if end.is_none() {
                break;
            }
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.take(line.trim_ascii_end()) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Takes a line; an event is over with an empty one.
    fn take(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], line[at + 1..].trim_ascii_start()),
            None => (line, &b""[..]),
        };
        match name {
            b"data" => {
                if !self.data.is_empty() {
                    self.data.push(b' ');
                }
                self.data.extend_from_slice(value);
            }
            b"id" => self.id = Some(value.to_vec()),
            _ => {}
        }
        None
    }
}
