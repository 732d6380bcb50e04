//! The keys of a replay.

/// How far one key goes, in milliseconds.
const STEP_MS: i64 = 10_000;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Pause,
    /// By so many milliseconds, back if it is negative.
    Seek(i64),
    Faster,
    Slower,
    /// To the next change of the screen.
    Step,
    Restart,
    Quit,
}

/// The commands of what was typed at once. Other keys do nothing.
pub(super) fn commands(typed: &[u8]) -> Vec<Command> {
    let (mut rest, mut commands) = (typed, Vec::new());
    while let Some((&first, after)) = rest.split_first() {
        let length = sequence_length(rest);
        let (key, next) = rest.split_at(length);
        rest = if length > 1 { next } else { after };
        commands.extend(match key {
            b"\x1b[D" | b"\x1bOD" | b"h" => Some(Command::Seek(-STEP_MS)),
            b"\x1b[C" | b"\x1bOC" | b"l" => Some(Command::Seek(STEP_MS)),
            b"\x1b[A" | b"\x1bOA" | b"+" => Some(Command::Faster),
            b"\x1b[B" | b"\x1bOB" | b"-" => Some(Command::Slower),
            b"\x1b[H" | b"\x1bOH" | b"\x1b[1~" | b"0" => Some(Command::Restart),
            _ if length > 1 => None,
            _ => match first {
                b' ' => Some(Command::Pause),
                b'.' => Some(Command::Step),
                b'q' | 0x03 | 0x04 | 0x1b => Some(Command::Quit),
                _ => None,
            },
        });
    }
    commands
}

/// The length of the first key: an escape sequence, or one byte.
fn sequence_length(typed: &[u8]) -> usize {
    match typed {
        [0x1b, b'O', _, ..] => 3,
        [0x1b, b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..0x7f).contains(byte));
            end.map_or(typed.len(), |end| end + 3)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_recognized_also_several_at_once() {
        let all = commands(b" \x1b[D\x1bOC+-\x1b[1;5D0.xq");
        let expected = [
            Command::Pause,
            Command::Seek(-10_000),
            Command::Seek(10_000),
            Command::Faster,
            Command::Slower,
            Command::Restart,
            Command::Step,
            Command::Quit,
        ];
        assert_eq!(all, expected);
        assert_eq!(commands(b"\x1b"), [Command::Quit]);
        assert_eq!(commands(b"\x03"), [Command::Quit]);
        assert_eq!(commands(b"\x1b[200~\x1b[15"), []);
    }
}
