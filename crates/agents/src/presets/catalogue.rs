//! The presets there are: those compiled in, and what the user's settings and the project file add
//! or change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::preset::Preset;
use patterm_store::private;

/// The text of the built-in presets, by name: the TOML files in `builtin`, as `build.rs` finds them.
pub(super) const BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The other files there; `inject.files` names them with a leading `@`.
pub(super) const BUILT_IN_FILES: &[(&str, &str)] =
    include!(concat!(env!("OUT_DIR"), "/built_in_files.rs"));

/// The key under which settings hold presets, and the one that names what a new preset starts from.
const AGENTS: &str = "agents";
const LIKE: &str = "like";

/// The name of a preset for people.
const TITLE: &str = "title";

/// A preset, or why there is none that works.
#[derive(Debug, Clone)]
pub struct Known {
    /// Where it comes from.
    pub origin: Origin,
    /// The preset; the error says what is wrong with it.
    pub preset: Result<Preset, String>,
}

/// Where a preset comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    BuiltIn,
    /// The user's settings.
    Settings(PathBuf),
    /// The project file, once it is trusted.
    Project(PathBuf),
}

/// All presets, by name.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The presets, by name.
    pub presets: BTreeMap<String, Known>,
    /// What is wrong with the settings as a whole.
    pub fault: Option<String>,
}

impl Catalogue {
    /// The presets that come with patterm, changed as the user's settings say.
    #[cfg(test)]
    pub fn read(settings: Option<&Path>) -> Self {
        Self::of(&SettingsText::read(settings), Path::new(""), &BTreeMap::new())
    }

    /// The same, changed further as the project file says.
    pub(crate) fn of(
        settings: &SettingsText,
        project_file: &Path,
        agents: &BTreeMap<String, Table>,
    ) -> Self {
        let mut tables: BTreeMap<String, (Origin, Table)> = BTreeMap::new();
        let mut catalogue = Self::default();
        for (name, text) in BUILT_IN {
            match text.parse() {
                Ok(table) => drop(tables.insert((*name).to_owned(), (Origin::BuiltIn, table))),
                Err(error) => catalogue.fault = Some(format!("the preset {name}: {error}")),
            }
        }
        if let Some((path, text)) = &settings.0 {
            match agents_in(path, text) {
                Ok(agents) => {
                    for (name, own) in in_order(agents) {
                        let origin = Origin::Settings(path.to_owned());
                        let begun = base(&name, &own, &tables);
                        tables.insert(name, (origin, merged(begun, own)));
                    }
                }
                Err(fault) => catalogue.fault = Some(fault),
            }
        }
        let own: Vec<_> = agents.iter().map(|(name, own)| (name.clone(), own.clone())).collect();
        for (name, own) in in_order(own) {
            let origin = Origin::Project(project_file.to_owned());
            let begun = base(&name, &own, &tables);
            tables.insert(name, (origin, merged(begun, own)));
        }
        let names: BTreeSet<String> = tables.keys().cloned().collect();
        catalogue.presets = tables
            .into_iter()
            .map(|(name, (origin, mut table))| {
                let preset = match table.remove(LIKE) {
                    Some(like) if like.as_str().is_none_or(|like| !names.contains(like)) => {
                        let like = like.as_str().unwrap_or("(not a string)");
                        Err(format!("`{LIKE}` is `{like}`, which is not a preset"))
                    }
                    _ => {
                        let preset = Value::Table(table).try_into::<Preset>();
                        preset.map_err(|e| e.message().to_owned())
                    }
                };
                (name, Known { origin, preset })
            })
            .collect();
        catalogue
    }
}

/// The user's settings file: its path and text, or why it cannot be used.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SettingsText(Option<(PathBuf, Result<String, String>)>);

impl SettingsText {
    /// Reads it; a file that does not exist counts as empty.
    pub(crate) fn read(path: Option<&Path>) -> Self {
        Self(path.map(|path| {
            let text = match private::read_settings(path) {
                Err(refusal) if refusal.is_absence() => Ok(String::new()),
                read => read.map_err(|e| format!("{}: {e}", path.display())),
            };
            (path.to_owned(), text)
        }))
    }
}

/// The presets in the text of a settings file.
fn agents_in(path: &Path, text: &Result<String, String>) -> Result<Vec<(String, Table)>, String> {
    let text = text.as_ref().map_err(Clone::clone)?;
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let mut settings: Table = text.parse().map_err(|e| wrong(&e))?;
    match settings.remove(AGENTS) {
        None => Ok(Vec::new()),
        Some(Value::Table(agents)) => agents
            .into_iter()
            .map(|(name, value)| match value {
                Value::Table(table) => Ok((name, table)),
                _ => Err(wrong(&format_args!("`{AGENTS}.{name}` takes a table"))),
            })
            .collect(),
        Some(_) => Err(wrong(&format_args!("`{AGENTS}` takes a table of presets"))),
    }
}

/// The user's presets, each after the one that it is `like`.
fn in_order(mut agents: Vec<(String, Table)>) -> Vec<(String, Table)> {
    let mut ordered = Vec::new();
    while !agents.is_empty() {
        let waits = |(name, own): &(String, Table)| {
            let like = own.get(LIKE).and_then(Value::as_str).filter(|like| like != name);
            agents.iter().any(|(other, _)| like == Some(other))
        };
        // If they depend on each other, any may be the first.
        let next = agents.iter().position(|agent| !waits(agent)).unwrap_or(0);
        ordered.push(agents.remove(next));
    }
    ordered
}

/// What a user's preset starts from: the one it is `like`, else the one with its name, else the
/// generic one.
fn base(name: &str, own: &Table, known: &BTreeMap<String, (Origin, Table)>) -> Table {
    let like = own.get(LIKE).and_then(Value::as_str);
    let found = like.and_then(|like| known.get(like)).or_else(|| known.get(name));
    let found = found.or_else(|| known.get("generic"));
    let mut base = found.map(|(_, table)| table.clone()).unwrap_or_default();
    if like.is_some_and(|like| like != name) {
        // Two presets with the same title could not be told apart.
        base.insert(TITLE.into(), name.into());
    }
    base
}

/// Merges tables; everything else is replaced, and `false` removes a table.
fn merged(mut base: Table, own: Table) -> Table {
    for (key, value) in own {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(_)), Value::Boolean(false)) => drop(base.remove(&key)),
            (Some(Value::Table(old)), Value::Table(new)) => {
                *old = merged(std::mem::take(old), new);
            }
            (_, value) => drop(base.insert(key, value)),
        }
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity_state::ActivityState;

    fn with_settings(text: &str) -> Catalogue {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Catalogue::read(Some(&path))
    }

    #[test]
    fn every_built_in_preset_is_valid() {
        let catalogue = Catalogue::read(None);
        assert_eq!(catalogue.fault, None);
        assert_eq!(catalogue.presets.len(), BUILT_IN.len());
        for (name, known) in &catalogue.presets {
            if let Err(error) = &known.preset {
                panic!("{name}: {error}");
            }
        }
    }

    #[test]
    fn settings_change_one_rule_and_leave_the_others() {
        let catalogue = with_settings(
            r#"
            [agents.claude]
            program = "/opt/claude"
            [agents.claude.rules.mine]
            state = "blocked"
            bottom = "Press any key"
            "#,
        );
        let claude = catalogue.presets["claude"].preset.as_ref().unwrap();
        let built_in = Catalogue::read(None);
        let before = built_in.presets["claude"].preset.as_ref().unwrap();
        assert_eq!(claude.program, "/opt/claude");
        assert_eq!(claude.rules.len(), before.rules.len() + 1);
        assert_eq!(claude.rules["mine"].state, ActivityState::Blocked);
        assert_eq!(claude.args, before.args);
        assert!(matches!(catalogue.presets["claude"].origin, Origin::Settings(_)));
        assert_eq!(catalogue.presets["codex"].origin, Origin::BuiltIn);
    }

    #[test]
    fn a_new_agent_starts_from_the_one_it_is_like_or_from_the_generic_one() {
        let catalogue = with_settings(
            "[agents.opus]\nlike = \"claude\"\nargs = [\"--model\", \"opus\"]\n\
             [agents.aider]\nprogram = \"aider\"\ntitle = \"Aider\"\n",
        );
        let opus = catalogue.presets["opus"].preset.as_ref().unwrap();
        assert_eq!((opus.program.as_str(), opus.args.len()), ("claude", 2));
        assert_eq!(opus.title, "opus", "not the title of the other one");
        let aider = catalogue.presets["aider"].preset.as_ref().unwrap();
        assert_eq!((aider.program.as_str(), aider.rules.len()), ("aider", 0));
    }

    #[test]
    fn a_new_agent_may_be_like_a_later_one() {
        let catalogue = with_settings(
            "[agents.a]\nlike = \"b\"\n[agents.b]\nlike = \"c\"\nargs = [\"-b\"]\n\
             [agents.c]\nlike = \"codex\"\nprogram = \"/opt/c\"\n\
             [agents.x]\nlike = \"y\"\n[agents.y]\nlike = \"x\"\n[agents.z]\nlike = \"nobody\"\n",
        );
        let a = catalogue.presets["a"].preset.as_ref().unwrap();
        assert_eq!((a.program.as_str(), a.args.as_slice()), ("/opt/c", &["-b".to_owned()][..]));
        assert!(a.composer.is_some(), "as codex has");
        let why = catalogue.presets["z"].preset.as_ref().unwrap_err();
        assert!(why.contains("nobody"), "{why}");
    }

    #[test]
    fn mistakes_are_reported_and_affect_no_other_preset() {
        let wrong_rule = with_settings("[agents.claude.rules.x]\nstate = \"busy\"\n");
        let error = wrong_rule.presets["claude"].preset.as_ref().unwrap_err();
        assert!(error.contains("busy"), "{error}");
        assert!(wrong_rule.presets["codex"].preset.is_ok());
        let unknown = with_settings("[agents.claude]\nprogramme = \"x\"\n");
        assert!(unknown.presets["claude"].preset.as_ref().unwrap_err().contains("programme"));
        for text in ["agents = 1", "[agents]\nclaude = 1", "[agents"] {
            let catalogue = with_settings(text);
            assert!(catalogue.fault.unwrap().contains("config.toml"), "{text}");
            assert!(catalogue.presets["claude"].preset.is_ok());
        }
    }

    /// A project file may contain everything that the built-in presets contain.
    #[test]
    fn the_schema_of_presets_has_all_keys_of_the_built_in_ones() {
        for (name, text) in BUILT_IN {
            let within = text.replace("\n[", &format!("\n[agents.{name}."));
            let file = format!("[agents.{name}]\n{within}");
            if let Err(faults) = patterm_project::project_file::ProjectFile::parse(&file) {
                panic!("{name}: {faults:?}");
            }
        }
        let off = "[agents.claude]\nresume = false\ncomposer = false\nrules.turn = false\n";
        assert!(patterm_project::project_file::ProjectFile::parse(off).is_ok());
    }
}
