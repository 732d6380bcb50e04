//! What is known of one agent's CLI: how it is started, how it is told things, and what it looks
//! like when it works, rests or waits for a person. All of it is data that a user can override.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Deserializer};

use crate::activity_state::ActivityState;

/// One agent's CLI.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What people call it.
    pub title: String,
    /// The program, looked for on PATH where it is no path.
    pub program: String,
    /// Arguments of the user's own: a model, a mode.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the user's own.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How patterm's tools and the agent's identity are given to it.
    #[serde(default)]
    pub inject: Inject,
    /// How patterm's own tools are written where the CLI is told not to ask before using them.
    #[serde(default)]
    pub approved: Approved,
    /// How its model knows patterm's tools: `{{tool}}` is the name of one.
    pub tool_name: Option<String>,
    /// How the first prompt is given. Without it, it is typed in once the CLI is ready.
    pub prompt: Option<PromptArguments>,
    /// How a conversation is taken up again. Without it, it cannot be.
    pub resume: Option<Resume>,
    /// How turns are typed in.
    #[serde(default)]
    pub input: Input,
    /// How to read what stands in its prompt box.
    pub composer: Option<Composer>,
    /// What its screen and title say, by names that reasons show.
    #[serde(default)]
    pub rules: BTreeMap<String, Rule>,
    /// What its hooks say, by the names of the events.
    #[serde(default)]
    pub hooks: BTreeMap<String, Hook>,
}

/// What makes the CLI use patterm's tools, for one launch and without a file of the user's. Values
/// are typed in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Inject {
    /// Arguments.
    pub args: Vec<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Files, in a folder of the agent's own.
    pub files: BTreeMap<String, String>,
    /// A home that shows the user's settings with more in them.
    pub overlay: Option<Overlay>,
}

/// A home of the agent's own that shows the user's files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// The folder below the home.
    pub of: String,
    /// The variable that tells the CLI where its home is, and that may tell where the user's is.
    pub variable: String,
    /// The file that gets more, as JSON.
    pub file: String,
    /// What it gets.
    pub json: String,
    /// Files that the CLI may write for the first time, and that are the user's. A name that ends with
    /// `/` is a folder's, which is made.
    #[serde(default)]
    pub also: Vec<String>,
    /// What else of the user's home the CLI reads there.
    #[serde(default)]
    pub beside: Vec<String>,
}

impl Preset {
    /// A text as a turn that is taken for words and for nothing else.
    pub(crate) fn as_words(&self, text: &str) -> String {
        let command = self.input.commands.as_ref().is_some_and(|commands| commands.is_match(text));
        // A line that ends with it goes on, for most of them, instead of being submitted.
        let goes_on = text.ends_with('\\');
        format!("{}{text}{}", if command { " " } else { "" }, if goes_on { " " } else { "" })
    }

    /// Whether the CLI has a file open from its first turn on. It may show work beside its prompt before
    /// that, while it starts.
    pub(crate) fn has_conversation_file(&self) -> bool {
        self.resume.as_ref().is_some_and(|resume| resume.told_by_files.is_some())
    }

    /// A text as it is typed in, with a blank behind what opens a list of completions: an open list
    /// would take the key that submits, and change the text.
    pub(crate) fn as_typed(&self, text: &str) -> String {
        let mut words = self.as_words(text);
        if self.input.completions.as_ref().is_some_and(|list| list.is_match(&words)) {
            words.push(' ');
        }
        words
    }
}

/// How the names of approved tools are put into arguments and files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approved {
    /// One of them; `{{tool}}` is its name.
    pub form: String,
    /// What stands between two.
    pub separator: String,
}

/// The arguments that carry the first prompt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptArguments {
    /// They follow all others.
    pub args: Vec<String>,
}

/// The arguments that name a conversation. `{{conversation}}` is its id: one that we chose, or one
/// that a hook told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// When it begins; empty where the CLI chooses the id.
    #[serde(default)]
    pub begin: Vec<String>,
    /// When it is taken up again.
    pub again: Vec<String>,
    /// The member of a call's `_meta` by which the CLI tells the id to patterm's tools.
    pub told_by_calls: Option<String>,
    /// The files by which the CLI tells the id.
    pub told_by_files: Option<ToldByFiles>,
    /// Whether `again` stands before the other arguments, as subcommands do.
    #[serde(default)]
    pub first: bool,
    /// Asked to end while it loads a conversation, the CLI deletes that conversation: so it is killed
    /// as long as it has taken no turn.
    #[serde(default)]
    pub kill_unused: bool,
}

/// Files that a CLI has open while it has a conversation, with its id in their names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldByFiles {
    /// The path of the file that has the conversation; its group `id` is the id.
    #[serde(deserialize_with = "pattern_with_id")]
    pub path: Regex,
    /// The path of a file that is written when the conversation is taken up, and tells the same.
    #[serde(default, deserialize_with = "optional_pattern_with_id")]
    pub taken_up: Option<Regex>,
    /// JSON pointers into the first line of the file: where one of them finds something, it is no
    /// conversation of a person's but of a helper's inside of the CLI.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// How turns are typed in.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Input {
    /// The key that submits.
    pub submit: String,
    /// The key that submits while it works, where that is another.
    pub submit_while_working: Option<String>,
    /// What would be taken for a command of the CLI's own, not for words, at the beginning of a turn.
    /// A blank before it makes it words.
    #[serde(deserialize_with = "optional_pattern")]
    pub commands: Option<Regex>,
    /// What opens a list of completions at the end of a turn, which would take the key that submits.
    /// A blank behind it closes the list.
    #[serde(deserialize_with = "optional_pattern")]
    pub completions: Option<Regex>,
    /// It takes no paste before it has switched bracketed paste on.
    pub wants_bracketed_paste: bool,
    /// A turn that comes while it works is kept by the CLI and taken later.
    pub while_working: bool,
    /// How long its screen must stand still after a paste before Enter is pressed.
    #[serde(deserialize_with = "milliseconds")]
    pub settle_ms: Duration,
    /// How long after it first showed its prompt it may still swallow keys.
    #[serde(deserialize_with = "milliseconds")]
    pub warm_up_ms: Duration,
    /// How long after a submit it may show nothing of it.
    #[serde(deserialize_with = "milliseconds")]
    pub hold_ms: Duration,
    /// Output that pauses for this long means rest, where no rule says anything.
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

/// How to read what stands in the prompt box.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Composer {
    /// What stands before the text, on its first row; the last row that matches counts. Where
    /// there is a `bar`, it stands before every row.
    #[serde(deserialize_with = "pattern")]
    pub begin: Regex,
    /// Its rows are all those above its end that `begin` matches, but for so many that say
    /// something else.
    pub bar: Option<Bar>,
    /// What stands before the text on the rows after it.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub more: Option<Regex>,
    /// The row after its last one; the last row that matches counts.
    #[serde(deserialize_with = "pattern")]
    pub end: Regex,
    /// What stands below it only where this is no prompt box, but a message of the conversation that
    /// looks like one.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub covered: Option<Regex>,
    /// What stands before a message of the user's in the conversation, on its first row; where it
    /// is also before the rows after that, `more` need not match them.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub said: Option<Regex>,
    /// What is cut off at the end of its rows.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub border: Option<Regex>,
    /// The terminal's cursor is shown in it; where it is not, this is no prompt box.
    #[serde(default)]
    pub has_cursor: bool,
    /// What it shows while it is empty, where that is not told by being faint.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub placeholder: Option<Regex>,
}

/// A prompt box with a bar at the left of every row.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// How many of its lowest rows are no text.
    pub below: u16,
}

/// What a screen or a title says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The state that follows.
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
    /// What `bottom` looks for may be wrapped onto the next row: in a narrow pane the CLI breaks its hints.
    #[serde(default)]
    pub wraps: bool,
    /// And none of those rows matches this.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub unless: Option<Regex>,
    /// The lowest row that is not blank matches: a dialog stands in the place of the prompt box, below
    /// everything that was said.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub lowest: Option<Regex>,
    /// And that row does not match this.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub unless_lowest: Option<Regex>,
    /// No prompt box is seen: whatever covers it is the CLI's own.
    #[serde(default)]
    pub no_prompt: bool,
    /// What stands between the prompt box and the last row above it that matches `since` matches,
    /// as lines.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub above: Option<Regex>,
    /// The row where the last turn begins, for `above`; without it, all rows above count.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub since: Option<Regex>,
    /// What the program says of its own state (OSC 7501) matches.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub report: Option<Regex>,
    /// What in the rows that it looks at says when a limit ends: the group `until`.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub until: Option<Regex>,
    /// It must have held for this long before it counts: a screen that is being drawn may lack its
    /// prompt box for a moment. Before a key is pressed it counts at once.
    #[serde(default, deserialize_with = "milliseconds")]
    pub for_ms: Duration,
    /// What that means, in words that the reason shows.
    pub says: Option<String>,
    /// What the reason quotes of the lowest rows, as lines without their borders, or of what stands
    /// `above`: the lowest place that each pattern matches, or the group `quote` of it. Without a match, it
    /// is the row that matched.
    #[serde(default, deserialize_with = "patterns")]
    pub quotes: Vec<Regex>,
    /// The program says by OSC 9;4 that it is busy, or that it is not.
    pub progress: Option<bool>,
}

impl Rule {
    /// Whether it depends on the title or on OSC 9;4. A program that reports its state (OSC 7501)
    /// keeps no mark of it there, and a model may have chosen the words of its title.
    pub(crate) fn is_by_title(&self) -> bool {
        self.title.is_some() || self.progress.is_some()
    }
}

/// How a hook says that usage is used up or that a rate is limited.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Where in what it was given the kind of the failure stands, as a JSON pointer, and which kinds
    /// are limits. Without them, the hook always tells of one.
    pub kind: Option<String>,
    /// The kinds that are limits.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub is: Option<Regex>,
    /// Where the CLI's words for it stand.
    pub text: String,
    /// What in those words says when it ends: the group `until`.
    #[serde(default, deserialize_with = "optional_pattern")]
    pub until: Option<Regex>,
}

/// What a hook says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The state that follows.
    pub state: Option<ActivityState>,
    /// What that means, in words that the reason shows.
    pub says: Option<String>,
    /// The turn is over because it failed.
    #[serde(default)]
    pub failed: bool,
    /// Where in what it was given the text of a turn stands, as a JSON pointer.
    pub prompt: Option<String>,
    /// Where the id of the conversation stands.
    pub conversation: Option<String>,
    /// What says that nothing was said in that conversation yet.
    pub fresh: Option<Fresh>,
    /// Where something stands that goes on although the turn is over.
    pub background: Option<String>,
    /// How it says that the turn ended at a limit.
    pub limit: Option<Limit>,
    /// The CLI goes on when its hook returns, and would begin without patterm's tools: so it returns
    /// when the CLI has them.
    #[serde(default)]
    pub waits_for_tools: bool,
}

/// How a hook says that a conversation begins.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fresh {
    /// Where in what it was given, as a JSON pointer.
    pub at: String,
    /// By one of these words.
    pub words: Vec<String>,
}

/// Rows that hold a CLI's prompt, its footer, and a dialog.
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
    fn no_list_of_completions_is_open_behind_a_turn() {
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
