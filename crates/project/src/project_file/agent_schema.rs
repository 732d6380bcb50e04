//! The keys of a preset below its first level. A table that is missing is inherited from the preset that
//! this one is based on; `false` removes an inherited table.

use super::schema::{STRINGS, Schema, key};

/// Durations in presets.
const MILLISECONDS: Schema = Schema::Whole { least: 0, most: u32::MAX as i64 };

const ROWS: Schema = Schema::Whole { least: 0, most: u16::MAX as i64 };

const STATES: Schema = Schema::Choice(&["working", "idle", "blocked", "limited", "unknown"]);

const fn part(of: &'static Schema) -> Schema {
    Schema::Either(&Schema::Off, of)
}

pub(super) const INJECT: Schema = part(&INJECT_KEYS);

static INJECT_KEYS: Schema = Schema::Table(&[
    key("args", STRINGS, "Arguments."),
    key("env", Schema::Strings, "Environment variables."),
    key("files", Schema::Strings, "Files to write for the launch, by name."),
    key("overlay", part(&OVERLAY), "A private copy of the user's settings folder, with additions."),
]);

static OVERLAY: Schema = Schema::Table(&[
    key("of", Schema::Text, "The user's settings folder."),
    key("variable", Schema::Text, "The variable that tells the CLI where its home is."),
    key("file", Schema::Text, "The settings file to extend."),
    key("json", Schema::Text, "The JSON to merge into that file."),
    key("also", STRINGS, "Files that the CLI may create there; folders end with `/`."),
    key("beside", STRINGS, "Other files of the user's home that the CLI reads."),
]);

pub(super) const APPROVED: Schema = part(&APPROVED_KEYS);

static APPROVED_KEYS: Schema = Schema::Table(&[
    key("form", Schema::Text, "The text for one tool; `{{tool}}` is its name."),
    key("separator", Schema::Text, "The text between two tools."),
]);

pub(super) const PROMPT: Schema = part(&PROMPT_KEYS);

static PROMPT_KEYS: Schema = Schema::Table(&[key("args", STRINGS, "Arguments.")]);

pub(super) const RESUME: Schema = part(&RESUME_KEYS);

static RESUME_KEYS: Schema = Schema::Table(&[
    key("begin", STRINGS, "Arguments that start a conversation with an id that patterm chose."),
    key("again", STRINGS, "Arguments that resume a conversation."),
    key("told_by_calls", Schema::Text, "The member of a tool call's `_meta` that contains the id."),
    key("told_by_files", part(&TOLD_BY_FILES), "Open files whose names contain the id."),
    key("first", Schema::Flag, "Whether `again` precedes the other arguments."),
    key(
        "kill_unused",
        Schema::Flag,
        "Whether to kill it instead of asking it to exit before its first turn.",
    ),
]);

static TOLD_BY_FILES: Schema = Schema::Table(&[
    key("path", Schema::Pattern, "The path of the conversation's file; the group `id` is the id."),
    key("taken_up", Schema::Pattern, "The path of a file that is written on resume."),
    key(
        "unless",
        STRINGS,
        "JSON pointers into the file's first line; if one matches, it belongs to a subagent.",
    ),
]);

pub(super) const INPUT: Schema = part(&INPUT_KEYS);

static INPUT_KEYS: Schema = Schema::Table(&[
    key("submit", Schema::Text, "The key that submits a turn."),
    key("submit_while_working", Schema::Text, "The key that submits a turn while it works."),
    key("commands", Schema::Pattern, "Text that the CLI would run as a command of its own."),
    key("completions", Schema::Pattern, "Text at the end of a turn that opens a completion list."),
    key(
        "wants_bracketed_paste",
        Schema::Flag,
        "It ignores pastes until it enables bracketed paste.",
    ),
    key("while_working", Schema::Flag, "It queues turns that are submitted while it works."),
    key("settle_ms", MILLISECONDS, "How long the screen must be unchanged after a paste."),
    key("warm_up_ms", MILLISECONDS, "How long it may ignore keys after it first shows its prompt."),
    key("hold_ms", MILLISECONDS, "How long it may take to show a submitted turn."),
    key("quiet_ms", MILLISECONDS, "A pause in output that means idle if no rule matches."),
]);

pub(super) const COMPOSER: Schema = part(&COMPOSER_KEYS);

static COMPOSER_KEYS: Schema = Schema::Table(&[
    key("begin", Schema::Pattern, "The first row of the prompt box."),
    key("bar", part(&BAR), "The prompt box has a bar at the left of every row."),
    key("more", Schema::Pattern, "The further rows of the prompt box."),
    key("end", Schema::Pattern, "The row below the prompt box."),
    key("covered", Schema::Pattern, "Text below a message that only looks like a prompt box."),
    key("said", Schema::Pattern, "The beginning of a user's message in the conversation."),
    key("border", Schema::Pattern, "The part of a row that is border."),
    key("has_cursor", Schema::Flag, "The cursor is in the prompt box."),
    key("placeholder", Schema::Pattern, "The text in an empty prompt box."),
]);

static BAR: Schema =
    Schema::Table(&[key("below", ROWS, "The number of its lowest rows that are not text.")]);

const PATTERNS: Schema = Schema::List { of: &Schema::Pattern, least: 0 };

const ANSWERS: Schema = Schema::List {
    of: &Schema::Choice(&["number", "up-down", "left-right", "label", "enter"]),
    least: 0,
};

pub(super) const RULES: Schema = part(&ALL_RULES);

static ALL_RULES: Schema = Schema::Named(&RULE);

static RULE: Schema = part(&RULE_KEYS);

static RULE_KEYS: Schema = Schema::Table(&[
    key("state", STATES, "The state if the rule matches."),
    key("title", Schema::Pattern, "The title matches."),
    key("bottom", Schema::Pattern, "One of the lowest rows matches."),
    key("rows", ROWS, "The number of lowest rows that are searched."),
    key("wraps", Schema::Flag, "A match of `bottom` may be wrapped onto the next row."),
    key("unless", Schema::Pattern, "None of these rows matches."),
    key("lowest", Schema::Pattern, "The lowest row that is not blank matches."),
    key("unless_lowest", Schema::Pattern, "That row does not match."),
    key("no_prompt", Schema::Flag, "No prompt box is visible."),
    key("above", Schema::Pattern, "The lines directly above the prompt box match."),
    key("since", Schema::Pattern, "The row from which those lines begin."),
    key("report", Schema::Pattern, "The state that the program reports (OSC 7501) matches."),
    key("until", Schema::Pattern, "The time at which a limit ends: the group `until`."),
    key("for_ms", MILLISECONDS, "How long the rule must have matched."),
    key("says", Schema::Text, "The reason that is shown."),
    key("quotes", PATTERNS, "Parts of the screen that the reason quotes: each group `quote`."),
    key("options", Schema::Pattern, "Finds options that share one row: each group is one option."),
    key("approves", Schema::Pattern, "The row in which a request for an approval begins."),
    key("command", Schema::Pattern, "The row of it in which the command begins."),
    key("answer", ANSWERS, "The keys that choose an option: the first of these that applies."),
    key("progress", Schema::Flag, "The program reports by OSC 9;4 that it is busy, or is not."),
]);

pub(super) const HOOKS: Schema = part(&ALL_HOOKS);

static ALL_HOOKS: Schema = Schema::Named(&HOOK);

static HOOK: Schema = part(&HOOK_KEYS);

static LIMIT: Schema = Schema::Table(&[
    key("kind", Schema::Text, "The JSON pointer to the kind of failure."),
    key("is", Schema::Pattern, "The kinds that are limits."),
    key("text", Schema::Text, "The JSON pointer to the CLI's message."),
    key("until", Schema::Pattern, "The time in it at which the limit ends: the group `until`."),
]);

static HOOK_KEYS: Schema = Schema::Table(&[
    key("state", STATES, "The state after this event."),
    key("says", Schema::Text, "The reason that is shown."),
    key("failed", Schema::Flag, "The turn ended with a failure."),
    key("prompt", Schema::Text, "The JSON pointer to the text of the turn."),
    key("conversation", Schema::Text, "The JSON pointer to the id of the conversation."),
    key("fresh", part(&FRESH), "How to recognise a conversation without turns."),
    key("background", Schema::Text, "The JSON pointer to work that continues after the turn."),
    key("limit", part(&LIMIT), "How to recognise a turn that ended at a limit."),
    key("waits_for_tools", Schema::Flag, "The CLI continues when its hook returns."),
    key("trust_ms", MILLISECONDS, "How long it counts although the screen shows something else."),
]);

static FRESH: Schema = Schema::Table(&[
    key("at", Schema::Text, "The JSON pointer to the value."),
    key("words", STRINGS, "The values that mean a fresh conversation."),
]);
