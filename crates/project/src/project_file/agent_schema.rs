//! What a preset of a project file may hold beneath its first level. Every part may be left out: it is
//! then as in the preset below. `false` takes a part of that one away.

use super::schema::{Schema, key};

const TEXTS: Schema = Schema::List { of: &Schema::Text, least: 0 };

/// Times as the presets read them.
const MILLISECONDS: Schema = Schema::Whole { least: 0, most: u32::MAX as i64 };

const STATES: Schema = Schema::Choice(&["working", "idle", "blocked", "limited", "unknown"]);

const fn part(of: &'static Schema) -> Schema {
    Schema::Either(&Schema::Off, of)
}

pub(super) const INJECT: Schema = part(&INJECT_KEYS);

static INJECT_KEYS: Schema = Schema::Table(&[
    key("args", TEXTS, "Arguments."),
    key("env", Schema::Strings, "Environment variables."),
    key("files", Schema::Strings, "Files that are written for the launch, by their names."),
    key("overlay", part(&OVERLAY), "A folder of settings that is laid over the user's own."),
]);

static OVERLAY: Schema = Schema::Table(&[
    key("of", Schema::Text, "The user's folder."),
    key("variable", Schema::Text, "The variable that names the folder to the CLI."),
    key("file", Schema::Text, "The file in it that is changed."),
    key("json", Schema::Text, "What is put into that file."),
    key("also", TEXTS, "Files, and folders with a `/` behind them, that the CLI may make there."),
    key("beside", TEXTS, "What else of the user's home the CLI reads."),
]);

pub(super) const APPROVED: Schema = part(&APPROVED_KEYS);

static APPROVED_KEYS: Schema = Schema::Table(&[
    key("form", Schema::Text, "How one tool is named."),
    key("separator", Schema::Text, "What stands between them."),
]);

pub(super) const PROMPT: Schema = part(&PROMPT_KEYS);

static PROMPT_KEYS: Schema = Schema::Table(&[key("args", TEXTS, "Arguments.")]);

pub(super) const RESUME: Schema = part(&RESUME_KEYS);

static RESUME_KEYS: Schema = Schema::Table(&[
    key("begin", TEXTS, "Arguments that begin a conversation with an id of ours."),
    key("again", TEXTS, "Arguments that take it up again."),
    key("told_by_calls", Schema::Text, "Where calls of tools name the conversation."),
    key("told_by_files", part(&TOLD_BY_FILES), "Open files whose names have the id."),
    key("first", Schema::Flag, "Whether `again` stands before the other arguments."),
    key(
        "kill_unused",
        Schema::Flag,
        "Whether it is killed, not asked to end, before its first turn.",
    ),
]);

static TOLD_BY_FILES: Schema = Schema::Table(&[
    key("path", Schema::Pattern, "The path of the conversation's file; its group `id` is the id."),
    key("taken_up", Schema::Pattern, "The path of a file that is written when it is taken up."),
    key("unless", TEXTS, "JSON pointers into its first line that a helper's conversation has."),
]);

pub(super) const INPUT: Schema = part(&INPUT_KEYS);

static INPUT_KEYS: Schema = Schema::Table(&[
    key("submit", Schema::Text, "The key that submits."),
    key("submit_while_working", Schema::Text, "The key that submits while it works."),
    key("commands", Schema::Pattern, "What it would take for a command of its own, not for words."),
    key("completions", Schema::Pattern, "What opens a list of completions at the end of a turn."),
    key("wants_bracketed_paste", Schema::Flag, "It takes no paste before it switched that on."),
    key("while_working", Schema::Flag, "A turn that comes while it works is taken later."),
    key("settle_ms", MILLISECONDS, "How long its screen stands still after a paste."),
    key("warm_up_ms", MILLISECONDS, "How long it may swallow keys once it shows its prompt."),
    key("hold_ms", MILLISECONDS, "How long after a submit it may show nothing of it."),
    key("quiet_ms", MILLISECONDS, "A pause that means rest, where no rule says anything."),
]);

pub(super) const COMPOSER: Schema = part(&COMPOSER_KEYS);

static COMPOSER_KEYS: Schema = Schema::Table(&[
    key("begin", Schema::Pattern, "The row where the prompt box begins."),
    key("bar", part(&BAR), "It has a bar at the left of every row."),
    key("more", Schema::Pattern, "Its further rows."),
    key("end", Schema::Pattern, "The row where it ends."),
    key("covered", Schema::Pattern, "What stands below only where it is an old message."),
    key("said", Schema::Pattern, "What begins a message of the user's in the conversation."),
    key("border", Schema::Pattern, "What of a row is border."),
    key("has_cursor", Schema::Flag, "The cursor stands in it."),
    key("placeholder", Schema::Pattern, "What it shows while it is empty."),
]);

static BAR: Schema = Schema::Table(&[key(
    "below",
    Schema::Whole { least: 0, most: u16::MAX as i64 },
    "How many of its lowest rows are no text.",
)]);

const PATTERNS: Schema = Schema::List { of: &Schema::Pattern, least: 0 };

pub(super) const RULES: Schema = part(&ALL_RULES);

static ALL_RULES: Schema = Schema::Named(&RULE);

static RULE: Schema = part(&RULE_KEYS);

static RULE_KEYS: Schema = Schema::Table(&[
    key("state", STATES, "The state that follows."),
    key("title", Schema::Pattern, "The title matches."),
    key("bottom", Schema::Pattern, "One of the lowest rows matches."),
    key("rows", Schema::Whole { least: 0, most: u16::MAX as i64 }, "How many rows are the lowest."),
    key("wraps", Schema::Flag, "What `bottom` looks for may be wrapped onto the next row."),
    key("unless", Schema::Pattern, "And none of those rows matches this."),
    key("lowest", Schema::Pattern, "The lowest row that is not blank matches."),
    key("unless_lowest", Schema::Pattern, "And that row does not match this."),
    key("no_prompt", Schema::Flag, "No prompt box is seen."),
    key("above", Schema::Pattern, "What stands right above the prompt box matches, as lines."),
    key("since", Schema::Pattern, "The row from which on that counts."),
    key("report", Schema::Pattern, "What it says of its own state (OSC 7501) matches."),
    key("until", Schema::Pattern, "What says when a limit ends: the group `until`."),
    key("for_ms", MILLISECONDS, "How long it must have held."),
    key("says", Schema::Text, "What that means, in words."),
    key("quotes", PATTERNS, "What the reason quotes of the screen: the group `quote` of each."),
    key("progress", Schema::Flag, "It says by OSC 9;4 that it is busy, or that it is not."),
]);

pub(super) const HOOKS: Schema = part(&ALL_HOOKS);

static ALL_HOOKS: Schema = Schema::Named(&HOOK);

static HOOK: Schema = part(&HOOK_KEYS);

static LIMIT: Schema = Schema::Table(&[
    key("kind", Schema::Text, "Where the kind of the failure stands, as a JSON pointer."),
    key("is", Schema::Pattern, "The kinds that are limits."),
    key("text", Schema::Text, "Where the CLI's words for it stand."),
    key("until", Schema::Pattern, "What in them says when it ends: the group `until`."),
]);

static HOOK_KEYS: Schema = Schema::Table(&[
    key("state", STATES, "The state that follows."),
    key("says", Schema::Text, "What that means, in words."),
    key("failed", Schema::Flag, "The turn is over because it failed."),
    key("prompt", Schema::Text, "Where the text of a turn stands, as a JSON pointer."),
    key("conversation", Schema::Text, "Where the id of the conversation stands."),
    key("fresh", part(&FRESH), "What says that nothing was said in it yet."),
    key("background", Schema::Text, "Where something stands that goes on after the turn."),
    key("limit", part(&LIMIT), "How it says that the turn ended at a limit."),
    key("waits_for_tools", Schema::Flag, "The CLI goes on when its hook returns."),
]);

static FRESH: Schema = Schema::Table(&[
    key("at", Schema::Text, "Where that stands, as a JSON pointer."),
    key("words", TEXTS, "The words that say so."),
]);
