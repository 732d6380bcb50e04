//! The text of a project file.

use std::fmt::Write;

use super::found::Suggestion;
use crate::toml_string::quoted;

const HEAD: &str = "\
# What patterm knows of this project. Nothing of it takes effect before a person has run
# `patterm trust`, and after every change again. `patterm schema` prints its schema for editors.
#
# A process has one entry that people and agents share. All there is to say about one:
#
# [processes.web]
# command = \"npm run dev\"             # for `sh -c`; or [\"npm\", \"run\", \"dev\"]
# directory = \"web\"                   # relative to this file
# environment = { PORT = \"3000\" }
# autostart = true                    # with patterm; false by default
# restart = \"on-failure\"              # or \"always\", \"never\" (default); or a table:
#                                     # { policy = \"always\", limit = 5, delay_seconds = 1 }
# watch = [\"web/**/*.ts\"]             # restarted when one of these files changes
# depends_on = [\"db\"]                 # started first, and waited for until it is ready
# ready = { pattern = \"ready in\" }    # or { port = 5432 }, or { exits = true }
";

const TAIL: &str = "
# Agents of this project, beside those that patterm knows:
#
# [agents.reviewer]
# like = \"claude\"
# args = [\"--model\", \"opus\"]

# MCP servers that run once for all agents, who see their tools as NAME__TOOL:
#
# [servers.search]
# command = [\"search-mcp\", \"--stdio\"]   # or image = \"…\", or url = \"https://…\"
# env = { SEARCH_ROOT = \".\", KEY = \"${SEARCH_KEY:-}\" }

# The server's limits, from its next start on:
#
# [limits]
# processes = 200
";

/// A project file that declares these, and starts none by itself.
pub(super) fn project_file(suggestions: &[Suggestion], servers: &[(String, String)]) -> String {
    let mut text = HEAD.to_owned();
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
        let command = quoted(&suggestion.command);
        let _ = writeln!(text, "\n[processes.{name}]\ncommand = {command}\nautostart = false");
    }
    for (n, (_, table)) in servers.iter().enumerate() {
        if n == 0 {
            text.push_str(
                "\n# From .mcp.json; clients that read it themselves start their own as well:\n",
            );
        }
        let _ = write!(text, "\n{table}");
    }
    text + TAIL
}

#[cfg(test)]
mod tests {
    use patterm_project::project_file::ProjectFile;

    use super::*;

    #[test]
    fn what_is_written_says_the_same_when_read() {
        let suggestion = |name: &str, command: &str| Suggestion {
            name: name.to_owned(),
            command: command.to_owned(),
            from: "Procfile",
        };
        let commands = ["a \"b\" \\c", "tab\there", "é\u{1b}[0m\u{7f}"];
        let suggestions: Vec<_> =
            ["web", "a.b", "-"].iter().zip(commands).map(|(n, c)| suggestion(n, c)).collect();
        let text = project_file(&suggestions[..2], &[]);
        let file = ProjectFile::parse(&text).unwrap();
        assert_eq!(file.processes["web"].argv[2], commands[0]);
        assert_eq!(file.processes["a.b"].argv[2], commands[1]);
        assert!(file.processes.values().all(|definition| !definition.autostart));
        assert_eq!(quoted(commands[2]), "\"é\\u001B[0m\\u007F\"");
        assert!(ProjectFile::parse(&project_file(&[], &[])).unwrap().processes.is_empty());
    }

    #[test]
    fn what_stands_in_comments_is_right_too() {
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
