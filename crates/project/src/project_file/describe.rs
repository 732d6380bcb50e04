//! Describes the effects of a project file to a person who decides whether to trust it.

use super::definition::{Definition, Policy, ProjectFile};
use super::description::Description;
use super::visible::{command_line, visible};

/// Everything that a file may do once it is trusted.
pub fn describe(file: &ProjectFile) -> String {
    let mut description = Description::default();
    for (name, definition) in &file.processes {
        describe_process(&mut description, name, definition);
    }
    for (name, members) in &file.groups {
        description.heading(&format!("group {name}: {}", members.join(", ")));
    }
    for (name, table) in &file.agents {
        description.heading(&format!("agent {name}"));
        for (key, value) in table {
            let value = serde_json::to_string(value).unwrap_or_default();
            description.plain(&format!("{} = {}", visible(key), visible(&value)));
        }
    }
    for (name, server) in &file.servers {
        server.describe(name, &mut description);
    }
    if let Some(bots) = &file.bots {
        bots.describe(&mut description);
    }
    if let Some(http) = &file.http {
        http.describe(&mut description);
    }
    for hook in &file.hooks {
        hook.describe(&mut description);
    }
    for (name, number) in &file.limits {
        description.heading(&format!("limit {name} = {number}"));
    }
    if let Some(remember) = file.remember_environment {
        description.heading(&format!("remember_environment = {remember}"));
    }
    if let Some(names) = &file.update_environment {
        let names: Vec<_> = names.iter().map(|name| visible(name)).collect();
        description.heading(&format!("update_environment = {}", names.join(", ")));
    }
    description.finish()
}

fn describe_process(description: &mut Description, name: &str, definition: &Definition) {
    let starts = if definition.autostart { ", started at once" } else { "" };
    description.heading(&format!("process {name}{starts}"));
    description.line("runs", command_line(&definition.argv));
    if let Some(folder) = &definition.directory {
        description.line("in", visible(&folder.to_string_lossy()));
    }
    for (variable, value) in &definition.environment {
        description.line("with", format!("{}={}", visible(variable), visible(value)));
    }
    if let Some(file) = &definition.env_file {
        let file = visible(&file.to_string_lossy());
        description.line("with", format!("the variables in {file}, as they are at each start"));
    }
    let restart = &definition.restart;
    let when = match restart.policy {
        Policy::Never => None,
        Policy::OnUnhealthy => Some("when it is unhealthy"),
        Policy::OnFailure => Some("when it fails"),
        Policy::Always => Some("whenever it exits"),
    };
    if let Some(when) = when {
        description.line("restarts", format!("{when}, up to {} times in a row", restart.limit));
    }
    if !definition.watch.is_empty() {
        let patterns: Vec<_> = definition.watch.iter().map(|glob| visible(glob)).collect();
        description.line("restarts", format!("when {} change", patterns.join(", ")));
    }
    if !definition.depends_on.is_empty() {
        description.line("after", definition.depends_on.join(", "));
    }
    if let Some(ready) = &definition.ready {
        description.line("ready when", ready.words());
    }
    if let Some(healthy) = &definition.healthy {
        let every = healthy.every.as_secs_f64();
        let words = healthy.probe.words();
        description.line("healthy if", format!("{words}, checked every {every} s"));
    }
    if let Some(words) = definition.stop.words() {
        description.line("stopped by", words);
    }
}
