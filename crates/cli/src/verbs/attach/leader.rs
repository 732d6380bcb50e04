//! The leader key: the key after it is for patterm, everything else is for the program.

/// `ctrl+b`.
const LEADER: u8 = 0x02;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// For the program.
    Input(Vec<u8>),
    /// Detach.
    Detach,
}

#[derive(Debug, Default)]
pub(super) struct Leader {
    /// The last key was the leader.
    pending: bool,
}

impl Leader {
    /// Leader and `d` detach; the leader twice is the key itself; with any other key both go to the
    /// program.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Typed {
        let mut input = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match (std::mem::take(&mut self.pending), byte) {
                (false, LEADER) => self.pending = true,
                (true, b'd') => return Typed::Detach,
                (true, LEADER) | (false, _) => input.push(byte),
                (true, _) => input.extend([LEADER, byte]),
            }
        }
        Typed::Input(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leader_and_d_detach_and_no_key_is_lost() {
        let mut leader = Leader::default();
        assert_eq!(leader.feed(b"abd"), Typed::Input(b"abd".to_vec()));
        assert_eq!(leader.feed(b"\x02"), Typed::Input(vec![]));
        assert_eq!(leader.feed(b"x\x02\x02y"), Typed::Input(b"\x02x\x02y".to_vec()));
        assert_eq!(leader.feed(b"a\x02d"), Typed::Detach);
    }
}
