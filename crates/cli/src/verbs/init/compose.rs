//! Services of a docker compose file.

use super::suggestion::{Suggestion, word};

/// One suggestion for each service; one for all if none can be read.
pub(super) fn services(file: &str, text: &str) -> Vec<Suggestion> {
    let names = names(text);
    if names.is_empty() {
        let why = format!("{file} is a docker compose file");
        return vec![Suggestion {
            why,
            ..Suggestion::new("compose", "docker compose up", "docker compose")
        }];
    }
    let service = |name: &String| Suggestion {
        why: format!(
            "{file} has the service {name}; --no-deps because the other services have their own entries"
        ),
        ..Suggestion::new(
            name,
            &format!("docker compose up --no-deps {}", word(name)),
            "docker compose",
        )
    };
    names.iter().map(service).collect()
}

/// The keys of `services:`. Only as much YAML is parsed as this needs.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = None;
    let lines = text.lines().skip_while(|line| line.trim_end() != "services:").skip(1);
    for line in lines.filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        if indent == 0 {
            break;
        }
        if indent == *depth.get_or_insert(indent)
            && let Some((name, _)) = line.trim().split_once(':')
        {
            names.push(name.trim_matches(['"', '\'']).to_owned());
        }
    }
    names
}
