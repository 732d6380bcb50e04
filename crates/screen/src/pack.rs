//! Packs bytes that repeat themselves, as those of a screen do: what occurred before is replaced by its distance and
//! length. The result is
//!
//! ```text
//! number of literal bytes | these | length of a repetition | its distance | number of literal bytes | …
//! ```

use crate::row_record::{put_number, take_number};

/// A shorter repetition is not worth its two numbers.
const MIN_LENGTH: usize = 4;

/// Places that are remembered, by the hash of the bytes there.
const TABLE: usize = 1 << 12;

pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(bytes.len() / 2);
    let mut seen = vec![None; TABLE];
    let (mut at, mut written) = (0, 0);
    while let Some(here) = bytes[at..].first_chunk::<MIN_LENGTH>() {
        let before = seen[hash(*here)].replace(at);
        let repeated = before.map_or(0, |before| common(&bytes[before..], &bytes[at..]));
        let Some(before) = before.filter(|_| repeated >= MIN_LENGTH) else {
            at += 1;
            continue;
        };
        put_literals(&mut packed, &bytes[written..at]);
        put_number(&mut packed, (repeated - MIN_LENGTH) as u64);
        put_number(&mut packed, (at - before) as u64);
        let end = at + repeated;
        for inside in at + 1..end {
            if let Some(here) = bytes[inside..].first_chunk::<MIN_LENGTH>() {
                seen[hash(*here)] = Some(inside);
            }
        }
        (at, written) = (end, end);
    }
    put_literals(&mut packed, &bytes[written..]);
    packed
}

/// The bytes that were packed; `None` if they were not, or are more than `most`.
pub(crate) fn unpack(mut packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let count = usize::try_from(take_number(&mut packed)).ok()?;
        let (literals, rest) = packed.split_at_checked(count)?;
        if bytes.len() + count > most {
            return None;
        }
        bytes.extend_from_slice(literals);
        if rest.is_empty() {
            return Some(bytes);
        }
        packed = rest;
        let length = usize::try_from(take_number(&mut packed)).ok()?.checked_add(MIN_LENGTH)?;
        let distance = usize::try_from(take_number(&mut packed)).ok()?;
        let start = bytes.len().checked_sub(distance).filter(|_| distance > 0)?;
        if length > most - bytes.len() {
            return None;
        }
        // It may overlap with itself.
        for at in start..start + length {
            bytes.push(bytes[at]);
        }
    }
}

fn put_literals(packed: &mut Vec<u8>, literals: &[u8]) {
    put_number(packed, literals.len() as u64);
    packed.extend_from_slice(literals);
}

fn common(before: &[u8], here: &[u8]) -> usize {
    before.iter().zip(here).take_while(|(a, b)| a == b).count()
}

fn hash(bytes: [u8; MIN_LENGTH]) -> usize {
    (u32::from_le_bytes(bytes).wrapping_mul(0x9e37_79b1) >> 20) as usize
}

#[cfg(test)]
mod tests {
    use arbtest::arbtest;

    use super::*;

    #[test]
    fn everything_is_unpacked_as_it_was() {
        for bytes in [&b""[..], b"a", b"aaaaaaaaaaaaaaaaaaaaaaaaa", b"abcabcabcabcabcx"] {
            assert_eq!(unpack(&pack(bytes), bytes.len()).as_deref(), Some(bytes));
        }
        assert!(pack(&[b' '; 10_000]).len() < 10);
        arbtest(|u| {
            let words: [&[u8]; 4] = [b"one ", b"another word ", b"\0\0\0\0\0\0\0\0", b"x"];
            let mut bytes = Vec::new();
            while !u.is_empty() && bytes.len() < 5_000 {
                match u.ratio(1, 4)? {
                    true => bytes.push(u.arbitrary()?),
                    false => bytes.extend_from_slice(u.choose(&words)?),
                }
            }
            assert_eq!(unpack(&pack(&bytes), bytes.len()), Some(bytes));
            Ok(())
        });
    }

    #[test]
    fn what_was_not_packed_is_refused_or_bounded() {
        arbtest(|u| {
            let bytes: Vec<u8> = u.arbitrary()?;
            assert!(unpack(&bytes, 1_000).is_none_or(|unpacked| unpacked.len() <= 1_000));
            Ok(())
        });
        assert_eq!(unpack(&pack(&[7; 100]), 99), None);
    }
}
