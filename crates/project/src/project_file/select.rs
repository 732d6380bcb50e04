//! Finds the processes that names of processes and groups refer to.

use std::collections::BTreeSet;

use thiserror::Error;

use super::definition::ProjectFile;

/// A name that is neither a process nor a group.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("patterm.toml declares no process or group `{name}`{}", listed(.known))]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// The declared names.
    pub known: Vec<String>,
}

fn listed(known: &[String]) -> String {
    match known.is_empty() {
        true => "; it declares none".into(),
        false => format!("; it declares {}", known.join(", ")),
    }
}

impl ProjectFile {
    /// The processes that these names of processes and groups refer to, or all processes if there are no names.
    /// Each process comes after those that it depends on.
    pub fn select(&self, names: &[String]) -> Result<Vec<&str>, UnknownName> {
        let mut wanted = BTreeSet::new();
        for name in names {
            match self.groups.get(name) {
                Some(members) => wanted.extend(members.iter().map(String::as_str)),
                None if self.processes.contains_key(name) => drop(wanted.insert(name.as_str())),
                None => {
                    let known = self.processes.keys().chain(self.groups.keys()).cloned().collect();
                    return Err(UnknownName { name: name.clone(), known });
                }
            }
        }
        let mut order = self.in_order();
        order.retain(|name| names.is_empty() || wanted.contains(name));
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [processes.db]
        command = "db"
        [processes.api]
        command = "api"
        depends_on = ["db"]
        [processes.docs]
        command = "docs"
        [groups]
        backend = ["api", "db"]
    "#;

    #[test]
    fn names_select_processes_in_the_order_of_their_dependencies() {
        let file = ProjectFile::parse(FILE).unwrap();
        let select = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            file.select(&names).map(|names| names.join(" ")).map_err(|error| error.to_string())
        };
        assert_eq!(select(&[]).as_deref(), Ok("db docs api"));
        assert_eq!(select(&["backend"]).as_deref(), Ok("db api"));
        assert_eq!(select(&["docs", "backend", "db"]).as_deref(), Ok("db docs api"));
        assert_eq!(
            select(&["web"]).unwrap_err(),
            "patterm.toml declares no process or group `web`; it declares api, db, docs, backend"
        );
    }

    #[test]
    fn clashes_and_unknown_members_are_refused() {
        for (groups, message) in [
            (
                "p7 = [\"api\"]",
                "`p7` looks like a process's id, such as p1 or 1; give the group another name",
            ),
            ("db = [\"api\"]", "`db` is already the name of a process"),
            ("all = [\"apii\"]", "there is no process `apii`"),
            ("all = [\"backend\"]", "`backend` is a group; a group consists of processes"),
            ("all = []", "must be a non-empty array of strings, not an empty array"),
        ] {
            let faults = ProjectFile::parse(&format!("{FILE}\n{groups}")).unwrap_err();
            let text = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(text.contains(message), "{groups}: {text}");
        }
    }
}
