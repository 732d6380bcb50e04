//! Names of shared tools as models see them: `server__tool`, with characters and a length that all
//! model APIs accept, stable for each tool.

use sha2::{Digest, Sha256};

/// The longest name: model APIs take 64 characters, and clients add prefixes of up to 14.
const NAME_LETTERS: usize = 48;

/// Characters of the hash that distinguishes shortened names.
const HASH_LETTERS: usize = 8;

/// The name of a server's tool.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let whole = format!("{server}__{tool}");
    if whole.len() <= NAME_LETTERS && whole.chars().all(plain) {
        return whole;
    }
    let mut hash = Sha256::new();
    hash.update(server.as_bytes());
    hash.update([0]);
    hash.update(tool.as_bytes());
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let letters = whole.chars().map(|c| if plain(c) { c } else { '_' });
    let start: String = letters.take(NAME_LETTERS - HASH_LETTERS - 1).collect();
    format!("{start}_{}", &hash[..HASH_LETTERS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_kept_and_long_ones_stay_distinct() {
        assert_eq!(tool_name("search", "find_all"), "search__find_all");
        let long = "x".repeat(60);
        let (a, b) = (tool_name("search", &long), tool_name("search", &format!("{long}y")));
        assert!(a.starts_with("search__xxx") && a.len() == NAME_LETTERS, "{a}");
        assert_ne!(a, b);
        assert_eq!(a, tool_name("search", &long), "the same each time");
        let dotted = tool_name("files", "read.file");
        assert!(dotted.starts_with("files__read_file_"), "{dotted}");
        assert_ne!(dotted, tool_name("files", "read_file"));
        // A name that starts like another one.
        assert_ne!(tool_name("a", "b__c.d"), tool_name("a__b", "c.d"));
    }
}
