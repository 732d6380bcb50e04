//! Parses a stream of server-sent events as bytes arrive: the data of each event, and the last id.

/// The parser of one stream.
#[derive(Debug)]
pub(crate) struct EventReader {
    limit: usize,
    id: Option<Vec<u8>>,
    line: Vec<u8>,
    /// The last byte was a carriage return, which may be followed by a line feed.
    returned: bool,
    data: Vec<u8>,
}

/// An event exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl EventReader {
    /// A parser for events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, id: None, line: Vec::new(), returned: false, data: Vec::new() }
    }

    /// The last id, if one arrived since the previous call.
    pub(crate) fn take_id(&mut self) -> Option<Vec<u8>> {
        self.id.take()
    }

    /// Consumes bytes up to the end of the next event with data; `None` if they contain no such
    /// end.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, TooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.returned) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            // A line ends with either character or with both.
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + part.len() + self.data.len() >= self.limit {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else {
                *bytes = &[];
                break;
            };
            self.returned = bytes[end] == b'\r';
            *bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.take(line.trim_ascii_end()) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Consumes a line; an empty one ends the event.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_cr_lf_or_both() {
        for stream in
            ["data: 1\n\ndata: 2\n\n", "data: 1\r\rdata: 2\r\r", "data: 1\r\n\r\ndata: 2\r\n\r\n"]
        {
            for step in 1..=stream.len() {
                let mut reader = EventReader::new(64);
                let mut events = Vec::new();
                for mut piece in stream.as_bytes().chunks(step) {
                    while let Some(event) = reader.next(&mut piece).unwrap() {
                        events.push(event);
                    }
                }
                assert_eq!(events, [b"1", b"2"], "{stream:?} by {step}");
            }
        }
    }
}
