//! The text of a project file.

use std::collections::BTreeMap;
use std::fmt::Write;

use patterm_wire::printable;

use super::names::{plain_name, with_end};
use super::suggestion::Suggestion;
use crate::toml_string::quoted;

const HEAD: &str = "\
# What patterm runs for this project. It takes effect only after you have run `patterm trust`, and
# again after every change. `patterm schema` prints its schema for editors.
#
# A process has one entry that people and agents share. All its settings:
#
# [processes.web]
# command = \"npm run dev\"             # run by `sh -c`; or [\"npm\", \"run\", \"dev\"]
# directory = \"web\"                   # relative to this file
# environment = { PORT = \"3000\" }
# autostart = true                    # start with patterm; false by default
# restart = \"on-failure\"              # or \"always\", \"on-unhealthy\", \"never\" (default); or a table:
#                                     # { policy = \"always\", limit = 5, delay_seconds = 1 }
# watch = [\"web/**/*.ts\"]             # restart when one of these files changes
# depends_on = [\"db\"]                 # start these first and wait until they are ready
# ready = { pattern = \"ready in\" }    # or { port = 5432 }, { http = \"http://127.0.0.1:3000/\" },
#                                     # { command = \"pg_isready\" }, { delay_seconds = 3 }, { exits = true }
# healthy = { http = \"http://127.0.0.1:3000/health\" }   # checked every 10 s once it is ready
# stop = { signal = \"SIGINT\", grace_seconds = 10 }      # SIGTERM and 5 s by default
";

const TASKS: &str = "
# `patterm up` starts everything that is declared. What seems to end by itself, or is not started by the file
# it was found in, is a comment below; remove the `# ` in front of each of its lines to declare it.
";

const TAIL: &str = "
# Agents of this project, in addition to the built-in ones:
#
# [agents.reviewer]
# like = \"claude\"
# args = [\"--model\", \"opus\"]

# MCP servers that run once for all agents, with tools named NAME__TOOL:
#
# [servers.search]
# command = [\"search-mcp\", \"--stdio\"]   # or image = \"…\", or url = \"https://…\"
# env = { SEARCH_ROOT = \".\", KEY = \"${SEARCH_KEY:-}\" }

# Limits of the server, in effect from its next start on:
#
# [limits]
# processes = 200
";

/// A project file that declares these and starts none of them.
pub(super) fn project_file(suggestions: &[Suggestion], servers: &[(String, String)]) -> String {
    let mut text = HEAD.to_owned();
    if suggestions.iter().any(|suggestion| suggestion.is_comment) {
        text.push_str(TASKS);
    }
    let mut from = "";
    for suggestion in suggestions {
        if suggestion.from != from {
            from = suggestion.from;
            let _ = writeln!(text, "\n# From {from}:");
        }
        let name = match suggestion.name.contains('.') {
            true => quoted(&suggestion.name),
            false => suggestion.name.clone(),
        };
        text.push('\n');
        let comment = if suggestion.is_comment { "# " } else { "" };
        for remark in suggestion.renamed.iter().chain([&suggestion.why]) {
            if !remark.is_empty() {
                // It names files and packages of the project, which may be called anything. In a comment it stays a
                // comment once people remove the `# ` of the whole block.
                let _ = writeln!(text, "{comment}# {}", printable::one_line(remark));
            }
        }
        for line in table(&name, suggestion) {
            let _ = writeln!(text, "{comment}{line}");
        }
    }
    text += &groups(suggestions);
    for (n, (_, table)) in servers.iter().enumerate() {
        if n == 0 {
            text.push_str(
                "\n# From .mcp.json; clients that read that file start their own copies as well:\n",
            );
        }
        let _ = write!(text, "\n{table}");
    }
    text + TAIL
}

/// The table of a process, as lines.
fn table(name: &str, suggestion: &Suggestion) -> Vec<String> {
    let mut lines = vec![format!("[processes.{name}]")];
    lines.push(format!("command = {}", quoted(&suggestion.command)));
    lines.extend(suggestion.directory.as_ref().map(|path| format!("directory = {}", quoted(path))));
    lines.extend(suggestion.port.map(|port| format!("ready = {{ port = {port} }}")));
    lines.extend(suggestion.setting_lines());
    lines.push("autostart = false".to_owned());
    lines
}

/// The groups that processes belong to. A group cannot have the name of a process.
fn groups(suggestions: &[Suggestion]) -> String {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let is_process = |name: &str| suggestions.iter().any(|suggestion| suggestion.name == name);
    for suggestion in suggestions.iter().filter(|suggestion| !suggestion.is_comment) {
        let Some(group) = suggestion.group.as_deref().map(plain_name) else { continue };
        let group = if is_process(&group) { with_end(&group, "-group") } else { group };
        if !is_process(&group) {
            groups.entry(group).or_default().push(quoted(&suggestion.name));
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let mut text = "\n# `patterm up NAME` starts a group:\n[groups]\n".to_owned();
    for (group, members) in groups {
        let _ = writeln!(text, "{} = [{}]", quoted(&group), members.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use patterm_project::project_file::ProjectFile;

    use super::*;

    #[test]
    fn a_written_file_reads_back_the_same() {
        let suggestion = |name: &str, command: &str| Suggestion {
            why: "a\nguess\u{1b}".to_owned(),
            directory: Some("a b".to_owned()),
            port: Some(8000),
            renamed: Some("renamed from `p1`".to_owned()),
            ..Suggestion::new(name, command, "Procfile")
        };
        let commands = ["a \"b\" \\c", "tab\there", "é\u{1b}[0m\u{7f}"];
        let suggestions: Vec<_> =
            ["web", "a.b", "-"].iter().zip(commands).map(|(n, c)| suggestion(n, c)).collect();
        let text = project_file(&suggestions[..2], &[]);
        let file = ProjectFile::parse(&text).unwrap();
        assert_eq!(file.processes["web"].argv[2], commands[0]);
        assert_eq!(file.processes["a.b"].argv[2], commands[1]);
        assert!(file.processes.values().all(|definition| !definition.autostart));
        let task = Suggestion { is_comment: true, ..suggestions[0].clone() };
        let text = project_file(&[task, suggestions[1].clone()], &[]);
        let file = ProjectFile::parse(&text).unwrap();
        assert_eq!(file.processes.keys().collect::<Vec<_>>(), ["a.b"], "{text}");
        assert!(text.contains("# [processes.web]\n# command = "), "{text}");
        assert!(text.contains("\n# # renamed from `p1`\n# # a\\nguess\\u{1b}\n# [proc"), "{text}");
        assert_eq!(quoted(commands[2]), "\"é\\u001B[0m\\u007F\"");
        assert!(ProjectFile::parse(&project_file(&[], &[])).unwrap().processes.is_empty());
    }

    #[test]
    fn the_commented_examples_are_valid() {
        let uncommented: String = project_file(&[], &[])
            .lines()
            .skip_while(|line| !line.contains("[processes"))
            .filter_map(|line| line.strip_prefix("# "))
            .filter(|line| line.starts_with('[') || line.contains(" = "))
            .filter(|line| !line.trim_start().starts_with("# "))
            .map(|line| format!("{}\n", line.replace("depends_on = [\"db\"]", "depends_on = []")))
            .collect();
        let file = ProjectFile::parse(&uncommented);
        assert!(file.is_ok(), "{file:?}\n{uncommented}");
        let file = file.unwrap();
        assert_eq!((file.processes.len(), file.agents.len(), file.servers.len()), (1, 1, 1));
    }
}
