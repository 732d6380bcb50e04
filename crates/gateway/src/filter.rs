//! Which tools of a server are visible.

/// Patterns of tool names, in which `*` matches any characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPatterns {
    /// Only these; all if `None`.
    pub only: Option<Vec<String>>,
    /// Except these.
    pub without: Vec<String>,
}

impl ToolPatterns {
    /// Whether a tool is visible.
    pub fn shows(&self, tool: &str) -> bool {
        let any =
            |patterns: &[String]| patterns.iter().any(|pattern| matches_pattern(pattern, tool));
        self.only.as_ref().is_none_or(|only| any(only)) && !any(&self.without)
    }

    /// Whether all tools are visible.
    pub fn shows_all(&self) -> bool {
        self.only.is_none() && self.without.is_empty()
    }
}

/// Whether a text matches a pattern in which `*` matches any characters.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(begin) else { return false };
    let mut parts = rest.split('*');
    let last = parts.next_back().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("read", "read", true),
            ("read", "read_file", false),
            ("read_*", "read_file", true),
            ("*_file", "read_file", true),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }
}
