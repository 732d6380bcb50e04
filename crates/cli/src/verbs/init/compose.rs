//! Services of a docker compose file.

use super::suggestion::{Setting, Suggestion, word};
use super::yaml::Yaml;

/// One suggestion for each service; one for all if none can be read.
pub(super) fn services(file: &'static str, text: &str) -> Vec<Suggestion> {
    let text = Yaml::parse(text);
    let services = text.get("services").map(Yaml::members).unwrap_or_default();
    if services.is_empty() {
        let why = format!("{file} is a docker compose file");
        return vec![Suggestion { why, ..Suggestion::new("compose", "docker compose up", file) }];
    }
    services.iter().map(|(name, service)| suggestion(file, name, service, services)).collect()
}

fn suggestion(
    file: &'static str,
    name: &str,
    service: &Yaml,
    all: &[(String, Yaml)],
) -> Suggestion {
    let needs = service.get("depends_on");
    let mut needs: Vec<_> = match needs.map(Yaml::members).unwrap_or_default() {
        [] => needs.map(Yaml::texts).unwrap_or_default(),
        members => members.iter().map(|(other, _)| other.as_str()).collect(),
    };
    // What is not declared cannot be started first.
    let has_profile = |other: &str| {
        all.iter().any(|(name, service)| name == other && service.get("profiles").is_some())
    };
    needs.retain(|other| !has_profile(other));
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
        settings: vec![Setting::DependsOn(needs.into_iter().map(str::to_owned).collect())],
        is_comment: has_profile,
        ..Suggestion::new(name, &format!("docker compose up --no-deps {}", word(name)), file)
    }
}

/// The port of this machine in `8080:80`, `127.0.0.1:8080:80/tcp`; none if docker chooses it, or if it is a range.
fn published(port: &str) -> Option<u16> {
    let mut parts = port.split('/').next()?.rsplit(':').skip(1);
    parts.next()?.parse().ok()
}
