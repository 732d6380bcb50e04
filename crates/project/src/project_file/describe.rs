//! What a project file would do, in words for the person who decides whether to trust it.

use std::fmt::Write;

use patterm_wire::printable::is_active;
use unicode_width::UnicodeWidthChar;

use super::definition::{Definition, Policy, ProjectFile, ReadyWhen};
use super::servers::{EngineDefinition, Location, ServerDefinition};

/// A text in which nothing hides: what a terminal would act on, not show, or show in another order
/// is written as an escape. Stricter than [`patterm_wire::printable`]: this is what a person trusts.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            c if is_active(c) || is_hidden(c) || turns(c) => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Characters without a shape or a column of their own, and blanks that are not what they look like.
fn is_hidden(c: char) -> bool {
    let blank = c.is_whitespace() && c != ' ';
    let listed = matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164
        | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xe0000..=0xe0fff);
    blank || listed || c.width() == Some(0)
}

/// Letters that are written from the right: beside them, a terminal may show the rest of a line in
/// another order.
fn turns(c: char) -> bool {
    matches!(u32::from(c),
        0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfefe | 0x10800..=0x10fff | 0x1e800..=0x1efff)
}

/// What stands before the further lines of a command: they are shown as lines, for people to read,
/// and none of them can pass for one of ours.
const NEXT_LINE: &str = "\n             | ";

/// A command as a shell would take it.
fn command_line(argv: &[String]) -> String {
    let plain = |word: &str| {
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        !word.is_empty() && word.chars().all(safe)
    };
    let word = |word: &String| match plain(word) {
        true => word.clone(),
        false => {
            let lines: Vec<_> = word.replace('\'', r"'\''").split('\n').map(visible).collect();
            format!("'{}'", lines.join(NEXT_LINE))
        }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Everything that trusting a file lets happen.
pub fn describe(file: &ProjectFile) -> String {
    let mut text = String::new();
    for (name, definition) in &file.processes {
        describe_process(&mut text, name, definition);
    }
    for (name, table) in &file.agents {
        let _ = writeln!(text, "agent {name}");
        lines(&mut text, table);
    }
    for (name, server) in &file.servers {
        describe_server(&mut text, name, server);
    }
    if let Some(bots) = &file.bots {
        let _ = writeln!(text, "containers of bots, by the label {}", visible(&bots.owner_label));
        if bots.allow_unlabelled {
            text.push_str("  admits       every bot to containers without that label\n");
        }
        let _ = writeln!(text, "  run by       {}", engine(&bots.engine));
        let _ = writeln!(text, "  runs         {}", command_line(&bots.command));
    }
    if let Some(address) = file.http.as_ref().and_then(|http| http.listen) {
        let _ = writeln!(text, "HTTP endpoint\n  listens on   {address}");
    }
    for (name, number) in &file.limits {
        let _ = writeln!(text, "limit {name} = {number}");
    }
    if text.is_empty() {
        text.push_str("nothing\n");
    }
    text
}

fn describe_process(text: &mut String, name: &str, definition: &Definition) {
    let begins = if definition.autostart { ", started at once" } else { "" };
    let _ = writeln!(text, "process {name}{begins}");
    let _ = writeln!(text, "  runs         {}", command_line(&definition.argv));
    if let Some(folder) = &definition.directory {
        let _ = writeln!(text, "  in           {}", visible(&folder.to_string_lossy()));
    }
    for (variable, value) in &definition.environment {
        let _ = writeln!(text, "  with         {}={}", visible(variable), visible(value));
    }
    let restart = &definition.restart;
    let when = match restart.policy {
        Policy::Never => None,
        Policy::OnFailure => Some("when it fails"),
        Policy::Always => Some("whenever it ends"),
    };
    if let Some(when) = when {
        let _ = writeln!(text, "  again        {when}, {} times in a row", restart.limit);
    }
    if !definition.watch.is_empty() {
        let patterns: Vec<_> = definition.watch.iter().map(|glob| visible(glob)).collect();
        let _ = writeln!(text, "  and when     {} change", patterns.join(", "));
    }
    if !definition.depends_on.is_empty() {
        let _ = writeln!(text, "  after        {}", definition.depends_on.join(", "));
    }
    if let Some(ready) = &definition.ready {
        let when = match &ready.when {
            ReadyWhen::Pattern(pattern) => format!("it prints {}", visible(pattern.as_str())),
            ReadyWhen::Port(port) => format!("it listens on port {port}"),
            ReadyWhen::Exits => "it ended with 0".to_owned(),
        };
        let _ = writeln!(text, "  ready when   {when}");
    }
}

fn describe_server(text: &mut String, name: &str, server: &ServerDefinition) {
    let _ = writeln!(text, "shared server {name}, started when it is needed");
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "  {what:<12} {value}");
    };
    match &server.place {
        Location::Here { command, directory } => {
            line("runs", command_line(command));
            if let Some(folder) = directory {
                line("in", visible(&folder.to_string_lossy()));
            }
        }
        Location::Inside { engine: by, container, command } => {
            line("runs", command_line(command));
            line("inside", format!("{} ({})", visible(container), engine(by)));
        }
        Location::Image { engine: by, image, command, network, mounts, .. } => {
            line("image", format!("{} ({})", visible(image), engine(by)));
            if !command.is_empty() {
                line("runs", command_line(command));
            }
            if *network {
                line("with", "a network".into());
            }
            for mount in mounts {
                line("sees", visible(mount));
            }
        }
        Location::Remote { url, headers } => {
            line("calls", visible(url));
            for (name, value) in headers {
                line("sends", format!("{}: {}", visible(name), visible(value)));
            }
        }
    }
    for (variable, value) in &server.env {
        line("with", format!("{}={}", visible(variable), visible(value)));
    }
}

fn engine(engine: &EngineDefinition) -> String {
    match &engine.socket {
        Some(socket) => format!("{} at {}", engine.name, visible(&socket.to_string_lossy())),
        None => engine.name.clone(),
    }
}

fn lines(text: &mut String, table: &toml::Table) {
    for (key, value) in table {
        let _ = writeln!(text, "  {} = {}", visible(key), visible(&json(value)));
    }
}

fn json(value: &toml::Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(
            visible("a\u{1b}[2Kb\u{202e}c\u{200b}\n\u{9b}é漢"),
            "a\\u{1b}[2Kb\\u{202e}c\\u{200b}\\n\\u{9b}é漢"
        );
        // A mark over a letter, a blank that no shell takes for one, a letter that turns the line.
        assert_eq!(visible("e\u{301} a\u{a0}b א"), "e\\u{301} a\\u{a0}b \\u{5d0}");
        let argv = ["sh", "-c", "curl x | sh\r# ok", ""].map(str::to_owned);
        assert_eq!(command_line(&argv), "sh -c 'curl x | sh\\u{d}# ok' ''");
        let argv = ["sh", "-c", "true\nprocess fake\n\u{1b}[2J"].map(str::to_owned);
        assert_eq!(
            command_line(&argv),
            "sh -c 'true\n             | process fake\n             | \\u{1b}[2J'"
        );
    }
}
