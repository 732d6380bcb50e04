//! The types that describe the keys and values of a TOML file. The same description drives validation and the
//! JSON schema for editors.

use super::limits::MOST_SECONDS;

/// The values that a key accepts.
#[derive(Debug)]
pub(super) enum Schema {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// An integer in a range.
    Whole { least: i64, most: i64 },
    /// A number of seconds, which may have a fraction.
    Seconds,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An array with at least this many elements.
    List { of: &'static Schema, least: usize },
    /// A table whose keys are names that the file chooses.
    Named(&'static Schema),
    /// A table of strings with arbitrary keys.
    Strings,
    /// A table with these keys.
    Table(&'static [SchemaKey]),
    /// A table whose keys are described in several places.
    Groups(&'static [&'static [SchemaKey]]),
    /// A table of positive integers with these keys.
    Counts(&'static [&'static str]),
    /// Either of the two.
    Either(&'static Schema, &'static Schema),
    /// A regular expression.
    Pattern,
    /// `false`, which removes a table that the preset would inherit.
    Off,
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct SchemaKey {
    pub(super) name: &'static str,
    pub(super) schema: Schema,
    pub(super) required: bool,
    /// The description that editors show.
    pub(super) description: &'static str,
}

/// An optional key.
pub(super) const fn key(
    name: &'static str,
    schema: Schema,
    description: &'static str,
) -> SchemaKey {
    SchemaKey { name, schema, required: false, description }
}

/// A key that must be set.
pub(super) const fn required(
    name: &'static str,
    schema: Schema,
    description: &'static str,
) -> SchemaKey {
    SchemaKey { name, schema, required: true, description }
}

/// An array of strings, which may be empty.
pub(super) const STRINGS: Schema = Schema::List { of: &Schema::Text, least: 0 };

/// A program and its arguments.
pub(super) const COMMAND: Schema = Schema::List { of: &Schema::Text, least: 1 };

/// A limit; the upper bound only keeps sums of limits from overflowing.
pub(super) const COUNT: Schema = Schema::Whole { least: 0, most: 1 << 40 };

impl Schema {
    /// The keys of a table with fixed keys.
    pub(super) fn keys(&self) -> Vec<&'static SchemaKey> {
        match self {
            Self::Table(keys) => keys.iter().collect(),
            Self::Groups(groups) => groups.iter().copied().flatten().collect(),
            _ => Vec::new(),
        }
    }

    /// The schema itself, or the one of two alternatives that has the type of a value.
    pub(super) fn fitting(&self, value: &toml::Value) -> &Self {
        match self {
            Self::Either(one, other) => {
                if one.is_for(value) {
                    one
                } else {
                    other
                }
            }
            schema => schema,
        }
    }

    /// The accepted values, for error messages.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Text => "a string".into(),
            Self::Flag => "true or false".into(),
            Self::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Self::Seconds => format!("a number of seconds from 0 to {MOST_SECONDS}"),
            Self::Choice(choices) => {
                let choices: Vec<_> =
                    choices.iter().map(|choice| format!("\"{choice}\"")).collect();
                format!("one of {}", choices.join(", "))
            }
            Self::List { of: Self::Text, least: 0 } => "an array of strings".into(),
            Self::List { of: Self::Text, .. } => "a non-empty array of strings".into(),
            Self::List { .. } => "an array".into(),
            Self::Strings => "a table of strings".into(),
            Self::Named(_) | Self::Table(_) | Self::Groups(_) | Self::Counts(_) => "a table".into(),
            Self::Either(one, other) => format!("{} or {}", one.words(), other.words()),
            Self::Pattern => "a regular expression, as a string".into(),
            Self::Off => "false".into(),
        }
    }

    /// Whether a value has the right type; its range or content is not checked.
    pub(super) fn is_for(&self, value: &toml::Value) -> bool {
        match self {
            Self::Text | Self::Choice(_) | Self::Pattern => value.is_str(),
            Self::Flag => value.is_bool(),
            Self::Whole { .. } => value.is_integer(),
            Self::Seconds => value.is_integer() || value.is_float(),
            Self::List { .. } => value.is_array(),
            Self::Named(_) | Self::Strings | Self::Table(_) | Self::Groups(_) | Self::Counts(_) => {
                value.is_table()
            }
            Self::Either(one, other) => one.is_for(value) || other.is_for(value),
            Self::Off => value.as_bool() == Some(false),
        }
    }
}
