//! Services of a docker compose file.

use super::suggestion::{Suggestion, word};
use super::yaml::Yaml;
use crate::toml_string::quoted;

/// One suggestion for each service; one for all if none can be read.
pub(super) fn services(file: &str, text: &str) -> Vec<Suggestion> {
    let text = Yaml::parse(text);
    let services = text.get("services").map(Yaml::members).unwrap_or_default();
    if services.is_empty() {
        let why = format!("{file} is a docker compose file");
        return vec![Suggestion {
            why,
            ..Suggestion::new("compose", "docker compose up", "docker compose")
        }];
    }
    services.iter().map(|(name, service)| suggestion(file, name, service, services)).collect()
}

fn suggestion(file: &str, name: &str, service: &Yaml, all: &[(String, Yaml)]) -> Suggestion {
    let needs = service.get("depends_on");
    let mut needs: Vec<_> = match needs.map(Yaml::members).unwrap_or_default() {
        [] => needs.map(Yaml::texts).unwrap_or_default(),
        members => members.iter().map(|(other, _)| other.as_str()).collect(),
    };
    // A setting may name only what is declared.
    needs.retain(|other| {
        all.iter().any(|(name, service)| name == other && service.get("profiles").is_none())
    });
    let depends_on: Vec<_> = needs.iter().map(|other| quoted(other)).collect();
    // Compose starts a service with a profile only if somebody asks for the profile.
    let has_profile = service.get("profiles").is_some();
    let why = match has_profile {
        true => format!("{file} has the service {name}, which belongs to a profile"),
        false => format!(
            "{file} has the service {name}; --no-deps because the other services have their own entries"
        ),
    };
    Suggestion {
        why,
        port: service.get("ports").and_then(|ports| published(ports.texts().first()?)),
        settings: match depends_on.is_empty() {
            true => Vec::new(),
            false => vec![format!("depends_on = [{}]", depends_on.join(", "))],
        },
        is_comment: has_profile,
        ..Suggestion::new(
            name,
            &format!("docker compose up --no-deps {}", word(name)),
            "docker compose",
        )
    }
}

/// The port of this machine in `8080:80`, `127.0.0.1:8080:80/tcp`; none if docker chooses it, or if it is a range.
fn published(port: &str) -> Option<u16> {
    let mut parts = port.split('/').next()?.rsplit(':').skip(1);
    parts.next()?.parse().ok()
}
