//! The server speaks to agents, of tools and their fields. Who types a verb knows verbs.

/// What a word of the server's is to people.
const WORDS: [(&str, &str); 32] = [
    ("agent", "PRESET"),
    ("argv", "COMMAND"),
    ("close_process", "`patterm close`"),
    ("expected_revision", "--revision"),
    ("get_process_output", "`patterm screen`"),
    ("get_process_raw_output", "`patterm logs --raw`"),
    ("get_process_status", "`patterm status`"),
    ("key", "KEY"),
    ("limit", "--limit"),
    ("list_agents", "`patterm agents`"),
    ("list_processes", "`patterm ps`"),
    ("message", "TEXT"),
    ("name", "NAME"),
    ("pattern", "REGEX"),
    ("process_id", "ID"),
    ("restart_process", "`patterm restart`"),
    ("scratchpad_append", "`patterm pad --append`"),
    ("scratchpad_list", "`patterm pads`"),
    ("scratchpad_read", "`patterm pad`"),
    ("scratchpad_write", "`patterm pad --write`"),
    ("search_output", "`patterm search`"),
    ("send_input", "`patterm send`"),
    ("send_message", "`patterm message`"),
    ("signal", "--signal"),
    ("spawn_agent", "`patterm agent`"),
    ("spawn_process", "`patterm run`"),
    ("start_process", "`patterm restart`"),
    ("stop_process", "`patterm stop`"),
    ("target_process_id", "ID"),
    ("timeout_seconds", "--timeout"),
    ("timer_list", "`patterm timers`"),
    ("wait_for_pattern", "`patterm wait`"),
];

/// A refusal as people are told it: names of tools wherever they stand, names of fields where they
/// are quoted as such.
pub(crate) fn for_people(refusal: &str) -> String {
    let mut told = String::with_capacity(refusal.len());
    let mut rest = refusal;
    while !rest.is_empty() {
        let (word, after, quoted) = next(rest);
        let known = WORDS.iter().find(|(tool, _)| *tool == word);
        match known.filter(|(tool, _)| quoted || tool.contains('_')) {
            Some((_, people)) => told.push_str(people),
            None => told.push_str(&rest[..rest.len() - after.len()]),
        }
        rest = after;
    }
    told
}

/// The next word, or what stands before it; what comes after; and whether it stood in backticks.
fn next(text: &str) -> (&str, &str, bool) {
    let of_word = |c: char| c.is_ascii_lowercase() || c == '_';
    let quoted = text.strip_prefix('`').and_then(|inner| {
        let (word, after) = inner.split_once('`')?;
        (!word.is_empty() && word.chars().all(of_word)).then_some((word, after, true))
    });
    quoted.unwrap_or_else(|| {
        let first = text.chars().next().unwrap_or(' ');
        let end = match of_word(first) {
            true => text.find(|c| !of_word(c)).unwrap_or(text.len()),
            false => first.len_utf8(),
        };
        (&text[..end], &text[end..], false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_speak_of_verbs() {
        for (refusal, told) in [
            (
                "p2 (web2) does not run; start_process starts it",
                "p2 (web2) does not run; `patterm restart` starts it",
            ),
            (
                "`target_process_id` names p1, which is no agent; use send_input",
                "ID names p1, which is no agent; use `patterm send`",
            ),
            ("`agent` names no preset: `nope`", "PRESET names no preset: `nope`"),
            ("`key` is unknown: there is no key \"x\"", "KEY is unknown: there is no key \"x\""),
            (
                "use `restart_process`, or restart_process_now",
                "use `patterm restart`, or restart_process_now",
            ),
            ("the agent `ätsch` `", "the agent `ätsch` `"),
            ("", ""),
        ] {
            assert_eq!(for_people(refusal), told);
        }
    }
}
