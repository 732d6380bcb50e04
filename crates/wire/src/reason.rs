//! Reasons of activities, for people. Tools return reasons with their evidence, such as the name of the hook that
//! reported a state; that name says nothing to somebody who did not write the hook.

/// What is said of a process that waits for a person if nothing else is known.
pub const WAITS: &str = "it is waiting for you";

/// How a program ended that returned this code.
#[must_use]
pub fn exit_code(code: i32) -> String {
    format!("it ended with exit code {code}")
}

/// How a program ended that this signal killed.
#[must_use]
pub fn exit_signal(signal: i32) -> String {
    format!("it was killed by signal {signal}")
}

/// A reason without the names of hooks; empty if nothing else is left.
#[must_use]
pub fn plain(reason: &str) -> &str {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(char::is_alphanumeric);
    let reason = match reason.rsplit_once(", although hooks report nothing since ") {
        Some((seen, name)) if is_name(name) => seen,
        _ => reason,
    };
    if reason.strip_prefix("hook ").is_some_and(is_name) {
        return "";
    }
    let in_brackets = reason.strip_suffix(')').and_then(|reason| reason.rsplit_once(" (hook "));
    let at_the_end = reason.rsplit_once(": hook ");
    let named = in_brackets.or(at_the_end).filter(|(_, name)| is_name(name));
    named.map_or(reason, |(reason, _)| reason)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn hooks_are_not_named() {
        assert_eq!(plain("its turn is over (hook Stop)"), "its turn is over");
        assert_eq!(plain("hook Stop"), "");
        assert_eq!(plain("its last turn failed: hook StopFailure"), "its last turn failed");
        assert_eq!(
            plain("it shows work, although hooks report nothing since Stop"),
            "it shows work"
        );
        assert_eq!(plain("it says (hook it up)"), "it says (hook it up)");
        assert_eq!(plain("the screen says so"), "the screen says so");
    }
}
