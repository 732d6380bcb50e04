//! The names of tools as an agent's model knows them: its CLI adds a prefix, and may have its
//! own tools with the same names.

use super::registry::Registry;

/// Replaces the names of patterm's tools in a text with those of a CLI. `form` contains
/// `{{tool}}`. Names that are ordinary words are only replaced in backticks.
pub(crate) fn named(text: &str, form: &str, tools: &Registry) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_part) {
        let (before, word) = rest.split_at(at);
        out.push_str(before);
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_quoted = out.ends_with('`') && after.starts_with('`');
        let is_name = (word.contains('_') || is_quoted) && tools.names().any(|name| name == word);
        match is_name {
            true => out.push_str(&form.replace("{{tool}}", word)),
            false => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_get_the_names_of_the_cli_and_other_words_are_unchanged() {
        let tools = Registry::standard();
        let check = |text: &str, wanted: &str| {
            assert_eq!(named(text, "mcp__patterm__{{tool}}", &tools), wanted);
        };
        check("with patterm's spawn_agent.", "with patterm's mcp__patterm__spawn_agent.");
        check("`whoami`, then `help`", "`mcp__patterm__whoami`, then `mcp__patterm__help`");
        check("help is help", "help is help");
        check("spawn_agents my_spawn_agent", "spawn_agents my_spawn_agent");
        check(
            "send_message (target_process_id p1)",
            "mcp__patterm__send_message (target_process_id p1)",
        );
        check("größe … timer_set", "größe … mcp__patterm__timer_set");
    }
}
