//! Gives what was found the names that a project file accepts, each once.

use patterm_project::project_file::{NameFault, ProjectFile, name_fault};

use super::suggestion::{Setting, Suggestion};
use super::write::project_file;

/// Suggestions per file: more would not help.
const MOST: usize = 20;

/// Characters of a name, as in the project file.
const NAME_CHARS: usize = 64;

/// The name of what has no letter that a name may have.
const NAMELESS: &str = "service";

/// What a name that looks like an id gets at its end.
const NOT_AN_ID: &str = "-service";

/// What was found so far; all names are valid and different.
#[derive(Default)]
pub(super) struct Suggestions(Vec<Suggestion>);

impl Suggestions {
    /// Adds the first of those that one file contains.
    pub(super) fn extend(&mut self, mut suggestions: Vec<Suggestion>) {
        suggestions.truncate(MOST);
        self.extend_all(suggestions);
    }

    /// Adds all that one file contains, because they depend on each other.
    pub(super) fn extend_all(&mut self, suggestions: Vec<Suggestion>) {
        let first = self.0.len();
        // Their names in the file, with those in the project file.
        let mut names = Vec::new();
        for suggestion in suggestions {
            if let Some((own, name)) = self.push(suggestion) {
                names.push((own, name));
            }
        }
        for suggestion in &mut self.0[first..] {
            resolve(suggestion, &names);
        }
        self.drop_refused(first);
    }

    pub(super) fn into_inner(self) -> Vec<Suggestion> {
        self.0
    }

    /// Returns the name that it has in its file, and the one that it gets.
    fn push(&mut self, suggestion: Suggestion) -> Option<(String, String)> {
        let command = suggestion.command.trim().to_owned();
        if command.is_empty() {
            return None;
        }
        let own = suggestion.name.clone();
        let (name, renamed) = self.name(&own, suggestion.from);
        self.0.push(Suggestion { name: name.clone(), command, renamed, ..suggestion });
        Some((own, name))
    }

    /// A valid name that is not taken, and if it is another one, why. A name that is taken gets the file's name in
    /// front, and a number if that is taken too.
    fn name(&self, own: &str, from: &str) -> (String, Option<String>) {
        let plain = plain_name(own);
        let is_taken = |name: &str| self.0.iter().any(|known| known.name == name);
        let name = match is_taken(&plain) {
            true => plain_name(&format!("{from}-{plain}")),
            false => plain.clone(),
        };
        let numbered = (2..).map(|number| with_end(&name, &format!("-{number}")));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let name = names.find(|name| !is_taken(name)).unwrap_or(name);
        let why = match name_fault(own) {
            Some(NameFault::LikeId) => "which looks like a process's id",
            Some(NameFault::Characters) => "which cannot be a name here",
            None if name == own => return (name, None),
            None => "which is taken",
        };
        (name, Some(format!("renamed from `{own}`, {why}")))
    }

    /// Settings that patterm refuses must not keep people from the rest.
    fn drop_refused(&mut self, first: usize) {
        if !is_refused(&self.0) {
            return;
        }
        for suggestion in &mut self.0[first..] {
            let mut alone = suggestion.clone();
            alone.settings.retain(|setting| matches!(setting, Setting::Line(_)));
            if is_refused(&[alone]) {
                suggestion.settings.clear();
                suggestion.group = None;
                suggestion.directory = None;
                let left_out = "has more settings, which could not be taken over";
                suggestion.why = format!("{} {left_out}", suggestion.from);
            }
        }
        // Processes that wait for each other.
        if is_refused(&self.0) {
            for suggestion in &mut self.0[first..] {
                let before = suggestion.settings.len();
                suggestion.settings.retain(|setting| matches!(setting, Setting::Line(_)));
                if suggestion.settings.len() < before {
                    let left_out = format!("not taken over from {}: depends_on", suggestion.from);
                    suggestion.add_why(&left_out);
                }
            }
        }
    }
}

/// Whether the project file would not be valid with these, once people have declared those in comments too.
fn is_refused(all: &[Suggestion]) -> bool {
    let declared = |one: &Suggestion| Suggestion { is_comment: false, ..one.clone() };
    let all: Vec<_> = all.iter().map(declared).collect();
    ProjectFile::parse(&project_file(&all, &[])).is_err()
}

/// Replaces the names of what it depends on, and leaves out what the project file does not declare.
fn resolve(suggestion: &mut Suggestion, names: &[(String, String)]) {
    let mut missing = Vec::new();
    for setting in &mut suggestion.settings {
        let Setting::DependsOn(needs) = setting else { continue };
        let found = std::mem::take(needs).into_iter().filter_map(|need| {
            let name = names.iter().find(|(own, _)| *own == need).map(|(_, name)| name.clone());
            if name.is_none() {
                missing.push(need);
            }
            name
        });
        *needs = found.collect();
    }
    suggestion
        .settings
        .retain(|setting| !matches!(setting, Setting::DependsOn(needs) if needs.is_empty()));
    for need in missing {
        suggestion
            .add_why(&format!("without a dependency on {need}, which {} lacks", suggestion.from));
    }
}

/// The most similar name that is valid in the project file.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(NAME_CHARS).collect();
    let name = name.trim_matches('-');
    match name_fault(name) {
        _ if name.is_empty() => NAMELESS.to_owned(),
        Some(NameFault::LikeId) => with_end(name, NOT_AN_ID),
        _ => name.to_owned(),
    }
}

/// A name with this end, and not too long.
pub(super) fn with_end(name: &str, end: &str) -> String {
    let room = NAME_CHARS.saturating_sub(end.len());
    name.chars().take(room).chain(end.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<(String, Option<String>)> {
        let mut suggestions = Suggestions::default();
        let new = |name: &&str| Suggestion::new(name, "x", "Procfile");
        suggestions.extend(names.iter().map(new).collect());
        suggestions.into_inner().into_iter().map(|one| (one.name, one.renamed)).collect()
    }

    #[test]
    fn names_that_the_project_file_refuses_are_replaced() {
        let renamed =
            |name: &str, why: &str| (name.to_owned(), Some(format!("renamed from {why}")));
        let long = "7".repeat(NAME_CHARS);
        let found = named(&["web", "p1", "12", "a b", "\u{6f22}", &long]);
        assert_eq!(
            found[..5],
            [
                ("web".to_owned(), None),
                renamed("p1-service", "`p1`, which looks like a process's id"),
                renamed("12-service", "`12`, which looks like a process's id"),
                renamed("a-b", "`a b`, which cannot be a name here"),
                renamed("service", "`\u{6f22}`, which cannot be a name here"),
            ]
        );
        assert!(found.iter().all(|(name, _)| name_fault(name).is_none()), "{found:?}");
    }

    #[test]
    fn names_that_are_taken_are_replaced_again_and_again() {
        let found = named(&["a-b", "a b", "a:b", "a/b"]);
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a-b", "Procfile-a-b", "Procfile-a-b-2", "Procfile-a-b-3"]);
    }

    #[test]
    fn dependencies_have_the_names_that_their_processes_get() {
        let mut suggestions = Suggestions::default();
        let needs = |name: &str, needs: &[&str]| Suggestion {
            settings: vec![Setting::DependsOn(needs.iter().map(|&need| need.to_owned()).collect())],
            ..Suggestion::new(name, "x", "compose.yaml")
        };
        suggestions.extend_all(vec![Suggestion::new("db", "x", "Procfile")]);
        suggestions.extend_all(vec![
            needs("db", &[]),
            needs("p1", &["db"]),
            needs("web", &["p1", "gone"]),
        ]);
        let found = suggestions.into_inner();
        let settings = |n: usize| found[n].setting_lines().join(";");
        assert_eq!(settings(1), "");
        assert_eq!(settings(2), "depends_on = [\"compose.yaml-db\"]");
        assert_eq!(settings(3), "depends_on = [\"p1-service\"]");
        assert_eq!(found[3].why, "without a dependency on gone, which compose.yaml lacks");
        assert!(ProjectFile::parse(&project_file(&found, &[])).is_ok());
    }

    #[test]
    fn a_circle_of_dependencies_is_left_out() {
        let mut suggestions = Suggestions::default();
        let needs = |name: &str, need: &str| Suggestion {
            settings: vec![Setting::DependsOn(vec![need.to_owned()])],
            ..Suggestion::new(name, "x", "compose.yaml")
        };
        suggestions.extend_all(vec![needs("a", "b"), needs("b", "a")]);
        let found = suggestions.into_inner();
        assert!(ProjectFile::parse(&project_file(&found, &[])).is_ok());
        assert_eq!(found[0].why, "not taken over from compose.yaml: depends_on");
    }
}
