//! What is wrong with the user's own settings, `config.toml`, which have the tables of a project file.

use std::path::Path;

use patterm_store::private;

use super::check::Checked;
use super::definition::ProjectFile;
use super::fault::Fault;
use super::file_schema::FILE;

/// The limits that the user's settings can set for all projects.
const USERS_LIMITS: [&str; 2] = ["end_grace_seconds", "unused_seconds"];

/// The tables that only a project's own file can have.
const PROJECTS_TABLES: [&str; 2] = ["processes", "groups"];

/// The consequence of an error.
const EFFECT: &str = "until this is fixed, no hooks, servers or other settings of this file take effect, \
    and no environments are stored";

/// What is wrong with the user's own settings. Each text begins with the file, the line and the column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsProblems {
    /// Errors. While there is one, only presets in the file take effect.
    pub errors: Vec<String>,
    /// Keys that have no effect in this file.
    pub ignored: Vec<String>,
}

impl SettingsProblems {
    /// Reads and checks the file. One that does not exist has no problems.
    pub fn of(path: Option<&Path>) -> Self {
        let Some(path) = path else { return Self::default() };
        if let Err(errors) = ProjectFile::of_the_user(path) {
            return Self { errors, ignored: Vec::new() };
        }
        let text = private::read_settings(path).unwrap_or_default();
        let with_path = |fault: &Fault| format!("{}:{fault}", path.display());
        Self { errors: Vec::new(), ignored: ignored(&text).iter().map(with_path).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.ignored.is_empty()
    }

    /// The first of them, how many more there are, and the consequence, for people.
    pub fn summary(&self) -> Option<String> {
        let all = if self.errors.is_empty() { &self.ignored } else { &self.errors };
        let first = all.first()?.trim_end();
        let more = match all.len() {
            1 => String::new(),
            2 => " (and 1 more)".to_owned(),
            count => format!(" (and {} more)", count - 1),
        };
        Some(match self.errors.is_empty() {
            true => format!("{first}{more}"),
            false => format!("{first}{more}; {EFFECT}"),
        })
    }
}

/// The keys of a valid file that do nothing in the user's settings.
fn ignored(text: &str) -> Vec<Fault> {
    let Ok(mut checked) = Checked::new(text, &FILE) else { return Vec::new() };
    for table in PROJECTS_TABLES {
        if !checked.table.contains_key(table) {
            continue;
        }
        let message = format!("`{table}` has no effect in this file");
        let hint = format!("declare {table} in the patterm.toml of a project");
        checked.fault(table, message, Some(hint));
    }
    let limits = checked.table.get("limits").and_then(|limits| limits.as_table());
    let limits = limits.into_iter().flat_map(|limits| limits.keys().cloned());
    for name in limits.filter(|name| !USERS_LIMITS.contains(&name.as_str())).collect::<Vec<_>>() {
        let path = format!("limits.{name}");
        let message = format!("`{path}` has no effect in this file");
        let hint = format!(
            "set it in the patterm.toml of a project; the limits that apply here are {}",
            USERS_LIMITS.join(" and ")
        );
        checked.fault(&path, message, Some(hint));
    }
    checked.faults.sort_by_key(|fault| (fault.line, fault.column));
    checked.faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> SettingsProblems {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let without_folder = |texts: Vec<String>| {
            let folder = format!("{}/", dir.path().display());
            texts.iter().map(|text| text.replace(&folder, "")).collect()
        };
        let SettingsProblems { errors, ignored } = SettingsProblems::of(Some(&path));
        SettingsProblems { errors: without_folder(errors), ignored: without_folder(ignored) }
    }

    #[test]
    fn each_error_has_the_file_its_line_and_a_reason() {
        for (text, reason) in [
            ("\nremember_environment = \"false\"", "2:24: `remember_environment` must be"),
            ("remember_enviroment = false", "1:1: unknown key `remember_enviroment`"),
            ("zzz = 1", "1:1: unknown key `zzz`"),
            ("update_environment = \"X\"", "1:22: `update_environment` must be"),
            ("[limits]\nprocesses = \"x\"", "2:13: `limits.processes` must be"),
            ("[http]\nlisten = 5", "2:10: `http.listen` must be"),
            ("[servers.x]\ncommand = \"y\"", "2:11: `servers.x.command` must be"),
            ("a = [", "1:6: "),
        ] {
            let found = problems(text);
            let error = format!("config.toml:{reason}");
            assert!(found.errors[0].starts_with(&error), "{text}: {found:?}");
            let summary = found.summary().unwrap();
            assert!(summary.starts_with(&error) && summary.ends_with(EFFECT), "{summary}");
        }
        assert!(SettingsProblems::of(Some(Path::new("/nowhere/config.toml"))).is_empty());
        assert!(
            SettingsProblems::of(Some(Path::new("/"))).errors[0].contains("not a regular file")
        );
    }

    #[test]
    fn a_key_that_only_a_project_can_have_is_named_and_the_rest_takes_effect() {
        let found = problems(
            "[limits]\nunused_seconds = 5\nprocesses = 1\nend_grace_seconds = 1\n\
            [processes.a]\ncommand = 'cat'\n[groups]\nall = ['a']\n",
        );
        assert_eq!(found.errors, Vec::<String>::new());
        assert_eq!(found.ignored.len(), 3, "{found:?}");
        let line = "config.toml:3:13: `limits.processes` has no effect in this file";
        assert!(found.ignored[0].starts_with(line), "{found:?}");
        assert!(found.ignored[1].starts_with("config.toml:5:"), "{found:?}");
        assert!(found.summary().unwrap().ends_with(" (and 2 more)"), "{found:?}");
        assert!(problems("[limits]\nunused_seconds = 5\n").is_empty());
    }
}
