//! The `[[hooks]]` tables: commands that are run and requests that are sent when something happens.

mod argument;
mod rate;
mod request;
#[cfg(test)]
mod tests;
mod url;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use patterm_wire::events::Fact;
use serde::Deserialize;

pub use argument::{HookArgument, Placeholder};
pub use rate::Rate;
pub use request::HookRequest;
pub use url::HookUrl;

use super::check::Checked;
use super::description::Description;
use super::env_file;
use super::fault::nearest;
use super::limits::{HOOK_TIMEOUT, HOOKS, NAME_CHARS};
use super::name::is_name;
use super::schema::{COMMAND, Schema, key, required};
use super::visible::{command_line, visible};

/// `hooks`.
pub(super) const SCHEMA: Schema = Schema::List { of: &HOOK, least: 0 };

static HOOK: Schema = Schema::Table(&[
    required(
        "on",
        COMMAND,
        "The types of events, such as \"agent.blocked\", or \"process.*\" for all types of processes.",
    ),
    key(
        "name",
        Schema::Text,
        "Its name in `patterm hooks`; by default that of the program or the host.",
    ),
    key(
        "run",
        COMMAND,
        "A program and its arguments. Whole arguments such as \"{name}\" and \"{summary}\" are replaced. The \
         event is JSON on its standard input.",
    ),
    key("post", Schema::Text, "A URL that gets the event as JSON. Redirects are not followed."),
    key(
        "headers",
        Schema::Strings,
        "Headers of the requests; `${NAME}` inserts a variable of yours or of `env_file`.",
    ),
    key(
        "env_file",
        Schema::Text,
        "A file of NAME=VALUE lines, relative to the project: variables for `headers` or for the command. It is read \
         for each event.",
    ),
    key(
        "after_seconds",
        Schema::Seconds,
        "Wait so long, and do nothing if the event is no longer true then: an agent was answered, for example.",
    ),
    key(
        "unless_viewed",
        Schema::Flag,
        "Whether to do nothing while the process is shown in a view; false by default.",
    ),
    key(
        "at_most",
        Schema::Text,
        "How often it fires for each process at most, such as \"1/min\" or \"10/h\"; without limit by default.",
    ),
    key(
        "timeout_seconds",
        Schema::Seconds,
        "How long a command or a request may take; 30 by default. A command is then killed with everything it \
         started.",
    ),
    key(
        "texts",
        Schema::Flag,
        "Whether the event contains texts of messages and keys that were typed; false by default.",
    ),
]);

/// The group of events about hooks themselves: a hook on them could cause itself.
const OWN_GROUP: &str = "hook";

/// A command or a request when something happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDefinition {
    /// Its name, which no other hook of the file has.
    pub name: String,
    /// The types of events, or groups such as `process.*`.
    pub on: Vec<String>,
    /// What it does.
    pub action: HookAction,
    /// A file of variables for its headers or for its command, relative to the project.
    pub env_file: Option<PathBuf>,
    /// How long an event must stay true.
    pub after: Duration,
    /// It does nothing while the process is shown in a view.
    pub unless_viewed: bool,
    /// How often it fires for each process.
    pub at_most: Option<Rate>,
    /// How long its command or request may take.
    pub timeout: Duration,
    /// Whether the event contains texts of messages and keys that were typed.
    pub texts: bool,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// It runs a program.
    Run(Vec<HookArgument>),
    /// It sends the event to a URL.
    Post(HookRequest),
}

/// A hook as it is written.
#[derive(Deserialize)]
pub(super) struct RawHook {
    #[serde(default)]
    on: Vec<String>,
    name: Option<String>,
    run: Option<Vec<String>>,
    post: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    env_file: Option<PathBuf>,
    after_seconds: Option<f64>,
    #[serde(default)]
    unless_viewed: bool,
    at_most: Option<String>,
    timeout_seconds: Option<f64>,
    #[serde(default)]
    texts: bool,
}

/// Reads all hooks of a file.
pub(super) fn read(checked: &mut Checked<'_>, raw: Vec<RawHook>) -> Vec<HookDefinition> {
    if raw.len() > HOOKS {
        let message = format!("the file has {} hooks; at most {HOOKS} are allowed", raw.len());
        checked.fault("hooks", message, None);
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    for (n, hook) in raw.iter().enumerate() {
        if let Some(name) = &hook.name
            && !names.insert(name.clone())
        {
            let message = format!("another hook has the name `{name}`, too");
            checked.fault(&format!("hooks[{n}].name"), message, None);
        }
    }
    let mut hooks = Vec::new();
    for (n, raw) in raw.into_iter().enumerate() {
        hooks.extend(hook(checked, &format!("hooks[{n}]"), raw, &mut names));
    }
    hooks
}

fn hook(
    checked: &mut Checked<'_>,
    path: &str,
    raw: RawHook,
    names: &mut BTreeSet<String>,
) -> Option<HookDefinition> {
    if raw.on.is_empty() {
        let message = format!("`{path}` has no `on`; it must list types of events");
        checked.fault(path, message, None);
    }
    for (n, kind) in raw.on.iter().enumerate() {
        check_type(checked, &format!("{path}.on[{n}]"), kind);
    }
    if raw.post.is_none() && !raw.headers.is_empty() {
        let message = "`headers` are for hooks with `post`".to_owned();
        checked.fault(&format!("{path}.headers"), message, None);
    }
    env_file::check(checked, path, raw.env_file.as_deref());
    let action = match (raw.run, raw.post) {
        (Some(argv), None) => argument::arguments(checked, &format!("{path}.run"), argv),
        (None, Some(url)) => request::read(checked, path, &url, raw.headers),
        (given, _) => {
            let message = match given {
                Some(_) => "a hook has either `run` or `post`, not both",
                None => "a hook needs `run` or `post`",
            };
            checked.fault(path, message.into(), None);
            None
        }
    };
    let at_most = raw.at_most.and_then(|text| match text.parse::<Rate>() {
        Ok(rate) => Some(rate),
        Err(message) => {
            let hint = Some("write it like \"1/min\"".to_owned());
            checked.fault(&format!("{path}.at_most"), message, hint);
            None
        }
    });
    let seconds = |raw: Option<f64>, default| {
        raw.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(default)
    };
    let timeout = seconds(raw.timeout_seconds, HOOK_TIMEOUT);
    if timeout.is_zero() {
        let message = "`timeout_seconds` must be greater than 0".to_owned();
        checked.fault(&format!("{path}.timeout_seconds"), message, None);
    }
    let action = action?;
    let name = match raw.name {
        Some(name) => {
            check_name(checked, &format!("{path}.name"), &name);
            name
        }
        None => derived_name(&action, names),
    };
    Some(HookDefinition {
        name,
        on: raw.on,
        action,
        env_file: raw.env_file,
        after: seconds(raw.after_seconds, Duration::ZERO),
        unless_viewed: raw.unless_viewed,
        at_most,
        timeout,
        texts: raw.texts,
    })
}

/// Checks that events of a type exist.
fn check_type(checked: &mut Checked<'_>, path: &str, kind: &str) {
    let group_of = |kind: &'static str| kind.split('.').next().unwrap_or(kind);
    let groups = Fact::TYPES.iter().map(|kind| group_of(kind)).filter(|group| *group != OWN_GROUP);
    let types = Fact::TYPES.iter().copied().filter(|kind| group_of(kind) != OWN_GROUP);
    if kind.split('.').next() == Some(OWN_GROUP) {
        let message = format!("`{kind}` is about hooks themselves, and cannot start one");
        return checked.fault(path, message, None);
    }
    let is_known = match kind.strip_suffix(".*") {
        Some(group) => groups.clone().any(|known| known == group),
        None => types.clone().any(|known| known == kind),
    };
    if is_known {
        return;
    }
    let meant = match kind.strip_suffix(".*") {
        Some(group) => nearest(group, groups).map(|group| format!("{group}.*")),
        None => nearest(kind, types).map(str::to_owned),
    };
    let hint = match meant {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => "`patterm events` shows events with their types".into(),
    };
    checked.fault(path, format!("`{kind}` is not a type of events"), Some(hint));
}

fn check_name(checked: &mut Checked<'_>, path: &str, name: &str) {
    if !is_name(name) {
        let message = format!(
            "`{name}` is not a valid name: use 1 to {NAME_CHARS} letters, digits, dots, dashes and underscores"
        );
        checked.fault(path, message, None);
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// The name of a hook that has none: that of its program or host, with a number if another hook has it.
fn derived_name(action: &HookAction, names: &mut BTreeSet<String>) -> String {
    let whole = match action {
        HookAction::Run(arguments) => {
            let program = arguments.first().map(ToString::to_string).unwrap_or_default();
            program.rsplit('/').next().unwrap_or_default().to_owned()
        }
        HookAction::Post(request) => request.url.host().to_owned(),
    };
    let plain: String = whole.chars().filter(|c| is_plain(*c)).take(NAME_CHARS / 2).collect();
    let plain = match plain.trim_start_matches('-') {
        "" => "hook",
        plain => plain,
    };
    let mut number = 1;
    loop {
        let name = if number == 1 { plain.to_owned() } else { format!("{plain}-{number}") };
        if names.insert(name.clone()) {
            return name;
        }
        number += 1;
    }
}

impl HookDefinition {
    /// Describes the hook to a person who decides whether to trust the file.
    pub(super) fn describe(&self, description: &mut Description) {
        description.heading(&format!("hook {} on {}", visible(&self.name), self.on.join(", ")));
        match &self.action {
            HookAction::Run(arguments) => {
                let argv: Vec<_> = arguments.iter().map(ToString::to_string).collect();
                description.line("runs", command_line(&argv));
            }
            HookAction::Post(HookRequest { url, headers }) => {
                description.line("posts to", visible(url.as_str()));
                for (name, value) in headers {
                    description.line("sends", format!("{}: {}", visible(name), visible(value)));
                }
            }
        }
        if let Some(file) = &self.env_file {
            let file = visible(&file.to_string_lossy());
            description.line("with", format!("the variables in {file}, as they are at each event"));
        }
        if self.texts {
            description.line("with", "texts of messages and keys that were typed");
        }
    }
}
