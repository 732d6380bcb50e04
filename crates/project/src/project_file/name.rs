//! Which names a project file accepts for processes and groups.

use patterm_panes::process::ProcessId;

use super::limits::NAME_CHARS;

/// Why a name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// It is empty, too long or contains other characters than letters, digits, dots, dashes and underscores.
    Characters,
    /// It looks like a process's id.
    LikeId,
}

/// Why a process or a group cannot have this name; nothing if it can.
pub fn name_fault(name: &str) -> Option<NameFault> {
    if !is_name(name) {
        return Some(NameFault::Characters);
    }
    ProcessId::is_like(name).then_some(NameFault::LikeId)
}

/// Whether a name consists of the characters that names may have.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=NAME_CHARS).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_no_ids() {
        for name in ["web", "a.b", "p1-service", "_", "1a"] {
            assert_eq!(name_fault(name), None, "{name}");
        }
        for name in ["", "a b", "-web", "\u{e9}", &"x".repeat(NAME_CHARS + 1)] {
            assert_eq!(name_fault(name), Some(NameFault::Characters), "{name}");
        }
        for name in ["p1", "P1", "12"] {
            assert_eq!(name_fault(name), Some(NameFault::LikeId), "{name}");
        }
    }
}
