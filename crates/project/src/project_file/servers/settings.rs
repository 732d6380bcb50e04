//! What all kinds of backends have in common: a kind's entry in the list of kinds, and the table of a
//! server while it is read.

use std::fmt;

use serde::de::DeserializeOwned;
use toml::Table;

use super::Location;
use crate::project_file::check::Checked;
use crate::project_file::description::Description;
use crate::project_file::schema::SchemaKey;

/// A kind of backend: its keys in the project file, and the function that reads them.
pub(super) struct Kind {
    /// The key that selects this kind.
    pub(super) selector: &'static str,
    /// The keys that belong to this kind.
    pub(super) keys: &'static [SchemaKey],
    /// Keys of other kinds that this one accepts as well.
    pub(super) accepts: &'static [&'static str],
    /// Reads the settings. Errors are recorded in the section; `None` if no settings result.
    pub(super) read: fn(&mut Section<'_, '_>) -> Option<Location>,
}

impl Kind {
    /// Whether a server of this kind may have a key.
    pub(super) fn allows(&self, name: &str) -> bool {
        self.accepts.contains(&name) || self.keys.iter().any(|key| key.name == name)
    }
}

/// The settings of one kind of backend. They are displayed as one line for lists of servers.
pub(super) trait BackendSettings: fmt::Display {
    /// Describes the settings to a person who decides whether to trust the file.
    fn describe(&self, description: &mut Description);
}

/// The table of one server while it is read. Its keys and the types of their values are valid.
pub(super) struct Section<'c, 't> {
    pub(super) checked: &'c mut Checked<'t>,
    /// The path of the table, such as `servers.files`.
    pub(super) path: &'c str,
    pub(super) table: &'c Table,
}

impl Section<'_, '_> {
    /// Reads the keys that `T` names; others are ignored.
    pub(super) fn read<T: DeserializeOwned>(&mut self) -> Option<T> {
        let read = self.table.clone().try_into();
        read.map_err(|error: toml::de::Error| {
            self.checked.fault(self.path, error.message().to_owned(), None);
        })
        .ok()
    }

    /// Records an error in the value of a key.
    pub(super) fn fault(&mut self, key: &str, message: impl Into<String>) {
        self.checked.fault(&format!("{}.{key}", self.path), message.into(), None);
    }

    /// Checks a command that must name a program; `or` says which other keys would do.
    pub(super) fn check_program(&mut self, command: &[String], or: &str) -> Option<()> {
        self.check_words(command);
        if command.first().is_none_or(String::is_empty) {
            let message = format!("`{}` does not name a program", self.path);
            self.checked.fault(self.path, message, Some(format!("set `command`{or}")));
            return None;
        }
        Some(())
    }

    /// Checks the words of a command; there may be none.
    pub(super) fn check_words(&mut self, command: &[String]) {
        if command.iter().any(|word| word.contains('\0')) {
            self.fault("command", "a command cannot contain NUL characters");
        }
    }
}
