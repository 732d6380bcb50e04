//! The description of one agent's CLI: how to start it, how to type into it, and what it looks like
//! when it works, is idle or waits for a person. All of it is data that a user can override.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use patterm_screen::TerminalName;
use regex::Regex;
use serde::{Deserialize, Deserializer};

use crate::activity_state::{ActivityState, AnswerWay};

/// One agent's CLI.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Its name for people.
    pub title: String,
    /// The program: a path, or a name that is searched for on PATH.
    pub program: String,
    /// The user's own arguments, such as a model or a mode.
    #[serde(default)]
    pub args: Vec<String>,
    /// The user's own variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A file with more of them, relative to the project.
    pub env_file: Option<PathBuf>,
    /// What its terminal calls itself (XTVERSION), if it would lose a feature under patterm's own name.
    pub terminal_name: Option<TerminalName>,
    /// How the CLI gets patterm's tools and the agent's identity.
    #[serde(default)]
    pub inject: Inject,
    /// How patterm's tools are named in the CLI's list of tools that need no approval.
    #[serde(default)]
    pub approved: Approved,
    /// How its model sees patterm's tools: `{{tool}}` is the name of one.
    pub tool_name: Option<String>,
    /// How the first prompt is passed. Without it, the prompt is typed once the CLI is ready.
    pub prompt: Option<PromptArguments>,
    /// How a conversation is resumed. Without it, that is not possible.
    pub resume: Option<Resume>,
    /// How turns are typed.
    #[serde(default)]
    pub input: Input,
    /// How to read the content of its prompt box.
    pub composer: Option<Composer>,
    /// Rules for its screen and title, by names that reasons show.
    #[serde(default)]
    pub rules: BTreeMap<String, Rule>,
    /// The meaning of its hooks, by the names of the events.
    #[serde(default)]
    pub hooks: BTreeMap<String, Hook>,
}

/// What makes the CLI use patterm's tools, for one launch and without changing the user's files.
///
/// Values are filled in, `{{name}}` as it is and `{{json:name}}` as a JSON string: `patterm` (the path of its
/// binary), `hook` (the command that a hook runs), `socket`, `project_key`, `identity_file`, `folder` (the agent's
/// own), `approved` (the tools that need no approval, written as [`Approved`] says) and `conversation` (its id).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Inject {
    /// Arguments.
    pub args: Vec<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Files in the agent's own folder.
    pub files: BTreeMap<String, String>,
    /// A home that shows the user's settings with additions.
    pub overlay: Option<Overlay>,
}

/// A home for the agent that shows the user's files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// The folder below the home.
    pub of: String,
    /// The variable that sets the CLI's home; the user may have set it, too.
    pub variable: String,
    /// The JSON file that gets additions.
    pub file: String,
    /// The additions.
    pub json: String,
    /// Files that the CLI may create and that belong to the user. A name that ends with `/` is a
    /// folder, which patterm creates.
    #[serde(default)]
    pub also: Vec<String>,
    /// What else the CLI reads from the user's home.
    #[serde(default)]
    pub beside: Vec<String>,
}

impl Preset {
    /// A text as a turn that the CLI does not interpret as a command.
    pub(crate) fn as_plain_turn(&self, text: &str) -> String {
        let command = self.input.commands.as_ref().is_some_and(|commands| commands.is_match(text));
        // Most CLIs continue a line that ends with a backslash instead of submitting it.
        let continues = text.ends_with('\\');
        format!("{}{text}{}", if command { " " } else { "" }, if continues { " " } else { "" })
    }

    /// Whether the CLI has a conversation file open from its first turn on. It may show work beside
    /// its prompt before that, while it starts.
    pub(crate) fn has_conversation_file(&self) -> bool {
        self.resume.as_ref().is_some_and(|resume| resume.told_by_files.is_some())
    }

    /// A text as it is typed, with a blank after anything that opens a list of completions: an open
    /// list would consume the key that submits, and change the text.
    pub(crate) fn as_typed(&self, text: &str) -> String {
        let mut words = self.as_plain_turn(text);
        if self.input.completions.as_ref().is_some_and(|list| list.is_match(&words)) {
            words.push(' ');
        }
        words
    }
}

/// How the names of approved tools are written in arguments and files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approved {
    /// The form of one; `{{tool}}` is its name.
    pub form: String,
    /// The separator between two.
    pub separator: String,
}

/// The arguments that carry the first prompt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptArguments {
    /// They follow all others.
    pub args: Vec<String>,
}

/// The arguments that name a conversation. `{{conversation}}` is its id: patterm chose it, or a
/// hook reported it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// To begin it; empty if the CLI chooses the id.
    #[serde(default)]
    pub begin: Vec<String>,
    /// To resume it.
    pub again: Vec<String>,
    /// The member of a call's `_meta` in which the CLI sends the id to patterm's tools.
    pub told_by_calls: Option<String>,
    /// The files that contain the id in their names.
    pub told_by_files: Option<ToldByFiles>,
    /// Whether `again` precedes the other arguments, as subcommands do.
    #[serde(default)]
    pub first: bool,
    /// If the CLI is terminated while it loads a conversation, it deletes that conversation: so it
    /// is killed until it has had a turn.
    #[serde(default)]
    pub kill_unused: bool,
}

/// Files that a CLI has open during a conversation, with its id in their names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldByFiles {
    /// The path of the file that contains the conversation; its group `id` is the id.
    #[serde(deserialize_with = "pattern_with_id")]
    pub path: Regex,
    /// The path of a file that is written when the conversation is resumed, with the same group.
    #[serde(default, deserialize_with = "optional_pattern_with_id")]
    pub taken_up: Option<Regex>,
    /// JSON pointers into the first line of the file: if one of them matches, it is the
    /// conversation of a subagent inside the CLI.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// How turns are typed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    /// The key that submits.
    pub submit: String,
    /// The key that submits while it works, if that is different.
    pub submit_while_working: Option<String>,
    /// Text at the beginning of a turn that the CLI would interpret as a command of its own. A
    /// blank before it prevents that.
    #[serde(deserialize_with = "optional_pattern")]
    pub commands: Option<Regex>,
    /// Text at the end of a turn that opens a list of completions, which would consume the key that
    /// submits. A blank after it closes the list.
    #[serde(deserialize_with = "optional_pattern")]
    pub completions: Option<Regex>,
    /// It accepts no paste before it has enabled bracketed paste.
    pub wants_bracketed_paste: bool,
    /// The CLI queues a turn that is submitted while it works.
    pub while_working: bool,
    /// How long its screen must be stable after a paste before Enter is pressed.
    #[serde(deserialize_with = "milliseconds")]
    pub settle_ms: Duration,
    /// How long after it first showed its prompt it may still lose keys.
    #[serde(deserialize_with = "milliseconds")]
    pub warm_up_ms: Duration,
    /// How long after a submit it may show no reaction.
    #[serde(deserialize_with = "milliseconds")]
    pub hold_ms: Duration,
    /// Without output for this long it counts as idle, if no rule matches.
    #[serde(deserialize_with = "optional_milliseconds")]
    pub quiet_ms: Option<Duration>,
}

impl Default for Input {
    fn default() -> Self {
        Self {
            submit: "enter".into(),
            submit_while_working: None,
            commands: None,
            completions: None,
            wants_bracketed_paste: false,
            while_working: true,
            settle_ms: Duration::from_millis(200),
            warm_up_ms: Duration::from_millis(500),
            hold_ms: Duration::from_secs(3),
            quiet_ms: None,
        }
    }
}

/// How to read the content of the prompt box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composer {
    /// What precedes the text on its first row; the last row that matches counts. Rows have no blanks at
    /// their end, so an empty prompt box may show nothing but the mark. With a `bar`, it precedes every
    /// row.
    #[serde(deserialize_with = "pattern")]
    pub begin: Regex,
    /// Its rows are all those above its end that `begin` matches, except the number of rows given
    /// here, which contain something else.
    pub bar: Option<Bar>,
    /// What precedes the text on the following rows.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub more: Option<Regex>,
    /// The row after its last one; the last row that matches counts.
    #[serde(deserialize_with = "pattern")]
    pub end: Regex,
    /// What is below it only if this is not the prompt box, but a message of the conversation that
    /// looks like one.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub covered: Option<Regex>,
    /// What precedes a message of the user in the conversation, on its first row. If it also
    /// precedes the following rows, `more` need not match them.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub said: Option<Regex>,
    /// What is cut off at the end of its rows.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub border: Option<Regex>,
    /// The terminal's cursor is shown in it; otherwise this is not the prompt box.
    #[serde(default)]
    pub has_cursor: bool,
    /// What it shows while it is empty, if that is not faint.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub placeholder: Option<Regex>,
}

/// A prompt box with a bar at the left of every row.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// How many of its lowest rows are not text.
    pub below: u16,
}

/// A rule that derives a state from a screen or a title.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The resulting state.
    pub state: ActivityState,
    /// The title matches.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub title: Option<Regex>,
    /// One of the lowest rows matches.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub bottom: Option<Regex>,
    /// How many of the rows that are not blank count as the lowest.
    #[serde(default = "bottom_rows")]
    pub rows: usize,
    /// The text that `bottom` matches may be wrapped onto the next row: the CLI wraps its hints in
    /// a narrow pane.
    #[serde(default)]
    pub wraps: bool,
    /// None of those rows matches this.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub unless: Option<Regex>,
    /// The lowest row that is not blank matches: a dialog replaces the prompt box, below the whole
    /// conversation.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub lowest: Option<Regex>,
    /// That row does not match this.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub unless_lowest: Option<Regex>,
    /// No prompt box is visible: whatever covers it belongs to the CLI.
    #[serde(default)]
    pub no_prompt: bool,
    /// The text between the last row that matches `since` and the prompt box matches, as lines.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub above: Option<Regex>,
    /// The row where the last turn begins, for `above`; without it, all rows above count.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub since: Option<Regex>,
    /// The program's report of its own state (OSC 7501) matches.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub report: Option<Regex>,
    /// Finds the end of a limit in the checked rows: the group `until`.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub until: Option<Regex>,
    /// How long it must have matched before it counts: a screen that is being drawn may lack its
    /// prompt box for a moment. Before a key is pressed it counts at once.
    #[serde(default, deserialize_with = "milliseconds")]
    pub for_ms: Duration,
    /// What it means, for the reason.
    pub says: Option<String>,
    /// What the reason quotes from the lowest rows, as lines without their borders, or from the
    /// text for `above`: the lowest match of each pattern, or its group `quote`. Without a match,
    /// the row that matched is quoted.
    #[serde(default, deserialize_with = "patterns")]
    pub quotes: Vec<Regex>,
    /// The row, without borders and indentation, in which a request for an approval begins. All of its text down to
    /// the options is part of the question; nothing that the agent wrote there can hide what is approved.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub approves: Option<Regex>,
    /// The row of such a request in which the command begins, and the mark before it: it is shown before the rest.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub command: Option<Regex>,
    /// Finds the options of a dialog that share one row: each group is one option.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub options: Option<Regex>,
    /// The keys that choose an option of the dialog: the first of these that applies to it. Without any, patterm
    /// does not answer it. `enter` after them: the CLI reads a line.
    #[serde(default)]
    pub answer: Vec<AnswerWay>,
    /// The program reports by OSC 9;4 that it is busy, or that it is not.
    pub progress: Option<bool>,
}

impl Rule {
    /// Whether it depends on the title or on OSC 9;4. A program that reports its state (OSC 7501)
    /// does not show it there, and a model may have chosen its title.
    pub(crate) fn is_by_title(&self) -> bool {
        self.title.is_some() || self.progress.is_some()
    }
}

/// How a hook reports a usage or rate limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// JSON pointer to the kind of the failure in the hook's input. Without it, the hook always
    /// reports a limit.
    pub kind: Option<String>,
    /// The kinds that are limits.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub is: Option<Regex>,
    /// JSON pointer to the CLI's message.
    pub text: String,
    /// Finds the end of the limit in that message: the group `until`.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub until: Option<Regex>,
}

/// The meaning of a hook.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The resulting state.
    pub state: Option<ActivityState>,
    /// What it means, for the reason.
    pub says: Option<String>,
    /// The turn ended because it failed.
    #[serde(default)]
    pub failed: bool,
    /// JSON pointer to the text of a turn in the hook's input.
    pub prompt: Option<String>,
    /// JSON pointer to the id of the conversation.
    pub conversation: Option<String>,
    /// How to recognise that the conversation has no turns yet.
    pub fresh: Option<Fresh>,
    /// JSON pointer to work that continues after the turn.
    pub background: Option<String>,
    /// How it reports that the turn ended at a limit.
    pub limit: Option<Limit>,
    /// The CLI continues when its hook returns, and would start without patterm's tools: so the
    /// hook returns once the CLI has them.
    #[serde(default)]
    pub waits_for_tools: bool,
    /// How long it is trusted although the screen shows something else, if not as long as others. For CLIs that report
    /// every end of a turn, but may draw late.
    #[serde(default, deserialize_with = "optional_milliseconds")]
    pub trust_ms: Option<Duration>,
}

/// How a hook reports that a conversation is new.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fresh {
    /// JSON pointer into the hook's input.
    pub at: String,
    /// The values that mean so.
    pub words: Vec<String>,
}

/// How many rows contain a CLI's prompt, its footer, and a dialog.
fn bottom_rows() -> usize {
    12
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    let text = String::deserialize(deserializer)?;
    Regex::new(&text).map_err(serde::de::Error::custom)
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Regex>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| Regex::new(text).map_err(serde::de::Error::custom)).collect()
}

fn pattern_with_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    let pattern = pattern(deserializer)?;
    match pattern.capture_names().any(|name| name == Some("id")) {
        true => Ok(pattern),
        false => Err(serde::de::Error::custom("the pattern has no group `(?<id>…)`")),
    }
}

fn optional_pattern_with_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Regex>, D::Error> {
    pattern_with_id(deserializer).map(Some)
}

fn optional_pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    pattern(deserializer).map(Some)
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u32::deserialize(deserializer).map(|ms| Duration::from_millis(ms.into()))
}

fn optional_milliseconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    milliseconds(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use crate::presets::Catalogue;

    #[test]
    fn no_list_of_completions_is_open_after_a_turn() {
        let catalogue = Catalogue::read(None);
        let typed =
            |cli: &str, text: &str| catalogue.presets[cli].preset.as_ref().unwrap().as_typed(text);
        for cli in ["claude", "codex", "opencode", "gemini"] {
            for (text, expected) in [
                ("see @README.md", "see @README.md "),
                ("two lines\ncc @alice", "two lines\ncc @alice "),
                ("ends with a \\", "ends with a \\ "),
                ("see @README.md first", "see @README.md first"),
                ("see @README.md\n", "see @README.md\n"),
            ] {
                assert_eq!(typed(cli, text), expected, "{cli}");
            }
        }
        assert_eq!(typed("claude", "and so :smile"), "and so :smile ");
        assert_eq!(typed("codex", "it costs $"), "it costs $ ");
        assert_eq!(typed("generic", "see @README.md"), "see @README.md");
    }
}
