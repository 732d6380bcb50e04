//! A line of a segment: the hash of an event, the number of the previous event in the same class, and the event as
//! JSON. The hash reveals damage to the line itself; the number reveals a missing line of the class.

use patterm_store::hex;
use sha2::{Digest, Sha256};

/// Bytes of a hash: 128 bits distinguish all events of a log from what damage may leave.
const HASH_BYTES: usize = 16;

/// Digits of a hash.
pub(crate) const HASH_DIGITS: usize = HASH_BYTES * 2;

/// The `prev` of the first event.
pub(crate) const NO_HASH: &str = "00000000000000000000000000000000";

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredEvent {
    /// Its number.
    pub(crate) seq: u64,
    /// The hash of its JSON text.
    pub(crate) hash: String,
    /// The number of the previous event in the same class; 0 for the first.
    pub(crate) class_prev: u64,
    /// Its JSON text.
    pub(crate) json: String,
}

/// The hash of an event's JSON text, in hexadecimal digits.
pub(crate) fn hash_of(json: &str) -> String {
    hex::encode(&Sha256::digest(json.as_bytes())[..HASH_BYTES])
}

/// The line of an event, with its end.
pub(crate) fn encode(hash: &str, class_prev: u64, json: &str) -> Vec<u8> {
    format!("{hash} {class_prev} {json}\n").into_bytes()
}

/// Reads a line without its end; `None` if it is damaged.
pub(crate) fn decode(line: &[u8]) -> Option<StoredEvent> {
    let (hash, class_prev, json) = parts(line)?;
    let json = std::str::from_utf8(json).ok()?;
    if hash_of(json).as_bytes() != hash {
        return None;
    }
    let hash = String::from_utf8(hash.to_vec()).ok()?;
    Some(StoredEvent {
        seq: seq_of_json(json.as_bytes())?,
        hash,
        class_prev,
        json: json.to_owned(),
    })
}

/// The number of the event in a line, without checking the line.
pub(crate) fn seq_of(line: &[u8]) -> Option<u64> {
    seq_of_json(parts(line)?.2)
}

fn parts(line: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let (hash, rest) = line.split_at_checked(HASH_DIGITS)?;
    let rest = rest.strip_prefix(b" ")?;
    let space = rest.iter().position(|byte| *byte == b' ')?;
    let class_prev = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
    Some((hash, class_prev, &rest[space + 1..]))
}

/// An event begins with its number.
fn seq_of_json(json: &[u8]) -> Option<u64> {
    let digits = json.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_and_any_changed_byte_of_the_event_is_noticed() {
        let json =
            r#"{"seq":12,"time":"t","type":"agent.idle","actor":{"kind":"system"},"prev":"é"}"#;
        let hash = hash_of(json);
        let line = encode(&hash, 9, json);
        let line = line.strip_suffix(b"\n").unwrap();
        let event = StoredEvent { seq: 12, hash, class_prev: 9, json: json.to_owned() };
        assert_eq!(decode(line), Some(event));
        assert_eq!(seq_of(line), Some(12));
        for at in (0..HASH_DIGITS).chain(HASH_DIGITS + 3..line.len()) {
            let mut damaged = line.to_vec();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
        }
        for end in 0..line.len() {
            assert_eq!(decode(&line[..end]), None, "cut at {end}");
        }
    }
}
