//! As much YAML as process-compose files need: nested mappings and lists in block style, values in flow style, plain and
//! quoted scalars, and block scalars. What is not understood is marked, so that nobody guesses what it means.

use super::flow;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Yaml {
    Scalar(String),
    List(Vec<Yaml>),
    Map(Vec<(String, Yaml)>),
    /// Something else, such as an alias.
    Unread,
}

impl Yaml {
    pub(super) fn parse(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        block(&lines, &mut 0, 0)
    }

    /// The member of a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Yaml> {
        self.members().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The members of a mapping; none if it is something else.
    pub(super) fn members(&self) -> &[(String, Yaml)] {
        if let Self::Map(members) = self { members } else { &[] }
    }

    /// The scalar at a path of members.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        let value = path.iter().try_fold(self, |value, key| value.get(key))?;
        if let Self::Scalar(text) = value { Some(text) } else { None }
    }

    /// Whether a part of it was not understood.
    pub(super) fn is_unread(&self) -> bool {
        match self {
            Self::Unread => true,
            Self::Scalar(_) => false,
            Self::List(items) => items.iter().any(Self::is_unread),
            Self::Map(members) => members.iter().any(|(_, value)| value.is_unread()),
        }
    }

    /// The scalars of a list.
    pub(super) fn texts(&self) -> Vec<&str> {
        let items = if let Self::List(items) = self { items.as_slice() } else { &[] };
        items.iter().filter_map(|item| item.text(&[])).collect()
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "---"
}

/// The value whose lines are indented by at least `least`.
fn block(lines: &[&str], at: &mut usize, least: usize) -> Yaml {
    let (mut members, mut items) = (Vec::new(), Vec::new());
    let mut depth = None;
    while let Some(line) = lines.get(*at) {
        if is_blank(line) {
            *at += 1;
            continue;
        }
        let own = indent(line);
        if own < least || depth.is_some_and(|depth| own < depth) {
            break;
        }
        let depth = *depth.get_or_insert(own);
        *at += 1;
        let line = line.trim();
        // A deeper line that belongs to nothing is left out.
        if own > depth {
            continue;
        }
        if let Some(item) = line.strip_prefix("- ") {
            items.push(Yaml::Scalar(scalar(item)));
        } else if let Some((key, value)) = key_and_value(line) {
            members.push((key, member(value, lines, at, depth)));
        }
    }
    if members.is_empty() && !items.is_empty() { Yaml::List(items) } else { Yaml::Map(members) }
}

/// The value of a member, which may continue on the next lines.
fn member(value: &str, lines: &[&str], at: &mut usize, depth: usize) -> Yaml {
    match value.chars().next() {
        Some('|') => Yaml::Scalar(folded(lines, at, depth, "\n")),
        Some('>') => Yaml::Scalar(folded(lines, at, depth, " ")),
        Some('[' | '{') => {
            let mut text = value.to_owned();
            while !flow::is_complete(&text) {
                // The items of a list in brackets may be on several lines.
                let Some(line) = lines.get(*at) else { break };
                text = format!("{text}\n{}", line.trim());
                *at += 1;
            }
            flow::parse(&text)
        }
        // Anchors, aliases and tags.
        Some('&' | '*' | '!') => {
            block(lines, at, depth + 1);
            Yaml::Unread
        }
        Some('#') | None => {
            // The items of a list may be as far to the left as their key.
            let next = lines[*at..].iter().find(|line| !is_blank(line));
            let is_list = next.is_some_and(|line| line.trim().starts_with("- "));
            block(lines, at, depth + usize::from(!is_list))
        }
        Some(_) => Yaml::Scalar(scalar(value)),
    }
}

/// The lines of a block scalar.
fn folded(lines: &[&str], at: &mut usize, depth: usize, joint: &str) -> String {
    let mut text: Vec<&str> = Vec::new();
    while let Some(line) =
        lines.get(*at).filter(|line| line.trim().is_empty() || indent(line) > depth)
    {
        text.push(line.trim());
        *at += 1;
    }
    text.join(joint).trim().to_owned()
}

fn key_and_value(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
    Some((scalar(key), value.trim()))
}

/// A plain or quoted scalar, without a comment after it.
fn scalar(text: &str) -> String {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('"') {
        let end = rest.replace("\\\"", "\u{0}\u{0}").find('"').unwrap_or(rest.len());
        return rest[..end].replace("\\\"", "\"").replace("\\n", "\n").replace("\\\\", "\\");
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let end = rest.replace("''", "\u{0}\u{0}").find('\'').unwrap_or(rest.len());
        return rest[..end].replace("''", "'");
    }
    text.split(" #").next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lists_and_scalars_are_read() {
        let text = "# a file\nversion: \"0.5\"  # quoted\nprocesses:\n  db:\n    command: \"echo \\\"up\\\"\"\n\
            \x20   environment:\n    - 'A=it''s'\n    - B=2 # two\n\n  web:\n    command: |\n      cd web\n      npm start\n\
            \x20   entrypoint: [\"sh\", -c]\n    note: >-\n      one\n      line\nlast: yes\n";
        let file = Yaml::parse(text);
        assert_eq!(file.text(&["version"]), Some("0.5"));
        assert_eq!(file.text(&["processes", "db", "command"]), Some("echo \"up\""));
        let environment = file.get("processes").and_then(|all| all.get("db")?.get("environment"));
        assert_eq!(environment.unwrap().texts(), ["A=it's", "B=2"]);
        let web = file.get("processes").and_then(|all| all.get("web")).unwrap();
        assert_eq!(web.text(&["command"]), Some("cd web\nnpm start"));
        assert_eq!(web.get("entrypoint").unwrap().texts(), ["sh", "-c"]);
        assert_eq!(web.text(&["note"]), Some("one line"));
        assert_eq!(file.text(&["last"]), Some("yes"));
    }

    #[test]
    fn flow_style_is_read_and_aliases_are_marked() {
        let text = "a: {b: 1, c: [x, \"y, z\"]} # two\nd: [\n  one, # first\n  two\n]\ne: *base\nf: &g\n  h: 1\ni: {\n";
        let file = Yaml::parse(text);
        assert_eq!(file.text(&["a", "b"]), Some("1"));
        assert_eq!(file.get("a").unwrap().get("c").unwrap().texts(), ["x", "y, z"]);
        assert_eq!(file.get("d").unwrap().texts(), ["one", "two"]);
        let unread: Vec<_> = file
            .members()
            .iter()
            .filter(|(_, value)| value.is_unread())
            .map(|(key, _)| key)
            .collect();
        assert_eq!(unread, ["e", "f", "i"]);
    }

    #[test]
    fn anything_else_is_left_out() {
        for text in ["", "- a\n- b", "a", "\tx: {y: 1}", ": :", "a:\n      b\n   c: 1", "'", "\"\\"]
        {
            let _ = Yaml::parse(text);
        }
        assert!(Yaml::parse("a").members().is_empty());
    }
}
