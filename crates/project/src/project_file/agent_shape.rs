//! What a preset of a project file may hold beneath its first level. Every part may be left out: it is
//! then as in the preset below. `false` takes a part of that one away.

use super::shape::{Shape, key};

const TEXTS: Shape = Shape::List { of: &Shape::Text, least: 0 };

/// Times as the presets read them.
const MILLISECONDS: Shape = Shape::Whole { least: 0, most: u32::MAX as i64 };

const STATES: Shape = Shape::Choice(&["working", "idle", "blocked", "limited", "unknown"]);

const fn part(of: &'static Shape) -> Shape {
    Shape::Either(&Shape::Off, of)
}

pub(super) const INJECT: Shape = part(&INJECT_KEYS);

static INJECT_KEYS: Shape = Shape::Table(&[
    key("args", TEXTS, "Arguments."),
    key("env", Shape::Strings, "Environment variables."),
    key("files", Shape::Strings, "Files that are written for the launch, by their names."),
    key("overlay", part(&OVERLAY), "A folder of settings that is laid over the user's own."),
]);

static OVERLAY: Shape = Shape::Table(&[
    key("of", Shape::Text, "The user's folder."),
    key("variable", Shape::Text, "The variable that names the folder to the CLI."),
    key("file", Shape::Text, "The file in it that is changed."),
    key("json", Shape::Text, "What is put into that file."),
    key("also", TEXTS, "Files, and folders with a `/` behind them, that the CLI may make there."),
    key("beside", TEXTS, "What else of the user's home the CLI reads."),
]);

pub(super) const APPROVED: Shape = part(&APPROVED_KEYS);

static APPROVED_KEYS: Shape = Shape::Table(&[
    key("form", Shape::Text, "How one tool is named."),
    key("separator", Shape::Text, "What stands between them."),
]);

pub(super) const PROMPT: Shape = part(&PROMPT_KEYS);

static PROMPT_KEYS: Shape = Shape::Table(&[key("args", TEXTS, "Arguments.")]);

pub(super) const RESUME: Shape = part(&RESUME_KEYS);

static RESUME_KEYS: Shape = Shape::Table(&[
    key("begin", TEXTS, "Arguments that begin a conversation with an id of ours."),
    key("again", TEXTS, "Arguments that take it up again."),
    key("told_by_calls", Shape::Text, "Where calls of tools name the conversation."),
    key("told_by_files", part(&TOLD_BY_FILES), "Open files whose names have the id."),
    key("first", Shape::Flag, "Whether `again` stands before the other arguments."),
    key(
        "kill_unused",
        Shape::Flag,
        "Whether it is killed, not asked to end, before its first turn.",
    ),
]);

static TOLD_BY_FILES: Shape = Shape::Table(&[
    key("path", Shape::Pattern, "The path of the conversation's file; its group `id` is the id."),
    key("taken_up", Shape::Pattern, "The path of a file that is written when it is taken up."),
    key("unless", TEXTS, "JSON pointers into its first line that a helper's conversation has."),
]);

pub(super) const INPUT: Shape = part(&INPUT_KEYS);

static INPUT_KEYS: Shape = Shape::Table(&[
    key("submit", Shape::Text, "The key that submits."),
    key("submit_while_working", Shape::Text, "The key that submits while it works."),
    key("commands", Shape::Pattern, "What it would take for a command of its own, not for words."),
    key("completions", Shape::Pattern, "What opens a list of completions at the end of a turn."),
    key("wants_bracketed_paste", Shape::Flag, "It takes no paste before it switched that on."),
    key("while_working", Shape::Flag, "A turn that comes while it works is taken later."),
    key("settle_ms", MILLISECONDS, "How long its screen stands still after a paste."),
    key("warm_up_ms", MILLISECONDS, "How long it may swallow keys once it shows its prompt."),
    key("hold_ms", MILLISECONDS, "How long after a submit it may show nothing of it."),
    key("quiet_ms", MILLISECONDS, "A pause that means rest, where no rule says anything."),
]);

pub(super) const COMPOSER: Shape = part(&COMPOSER_KEYS);

static COMPOSER_KEYS: Shape = Shape::Table(&[
    key("begin", Shape::Pattern, "The row where the prompt box begins."),
    key("bar", part(&BAR), "It has a bar at the left of every row."),
    key("more", Shape::Pattern, "Its further rows."),
    key("end", Shape::Pattern, "The row where it ends."),
    key("covered", Shape::Pattern, "What stands below only where it is an old message."),
    key("said", Shape::Pattern, "What begins a message of the user's in the conversation."),
    key("border", Shape::Pattern, "What of a row is border."),
    key("has_cursor", Shape::Flag, "The cursor stands in it."),
    key("placeholder", Shape::Pattern, "What it shows while it is empty."),
]);

static BAR: Shape = Shape::Table(&[key(
    "below",
    Shape::Whole { least: 0, most: u16::MAX as i64 },
    "How many of its lowest rows are no text.",
)]);

const PATTERNS: Shape = Shape::List { of: &Shape::Pattern, least: 0 };

pub(super) const RULES: Shape = part(&ALL_RULES);

static ALL_RULES: Shape = Shape::Named(&RULE);

static RULE: Shape = part(&RULE_KEYS);

static RULE_KEYS: Shape = Shape::Table(&[
    key("state", STATES, "The state that follows."),
    key("title", Shape::Pattern, "The title matches."),
    key("bottom", Shape::Pattern, "One of the lowest rows matches."),
    key("rows", Shape::Whole { least: 0, most: u16::MAX as i64 }, "How many rows are the lowest."),
    key("wraps", Shape::Flag, "What `bottom` looks for may be wrapped onto the next row."),
    key("unless", Shape::Pattern, "And none of those rows matches this."),
    key("lowest", Shape::Pattern, "The lowest row that is not blank matches."),
    key("unless_lowest", Shape::Pattern, "And that row does not match this."),
    key("no_prompt", Shape::Flag, "No prompt box is seen."),
    key("above", Shape::Pattern, "What stands right above the prompt box matches, as lines."),
    key("since", Shape::Pattern, "The row from which on that counts."),
    key("report", Shape::Pattern, "What it says of its own state (OSC 7501) matches."),
    key("until", Shape::Pattern, "What says when a limit ends: the group `until`."),
    key("for_ms", MILLISECONDS, "How long it must have held."),
    key("says", Shape::Text, "What that means, in words."),
    key("quotes", PATTERNS, "What the reason quotes of the screen: the group `quote` of each."),
    key("progress", Shape::Flag, "It says by OSC 9;4 that it is busy, or that it is not."),
]);

pub(super) const HOOKS: Shape = part(&ALL_HOOKS);

static ALL_HOOKS: Shape = Shape::Named(&HOOK);

static HOOK: Shape = part(&HOOK_KEYS);

static LIMIT: Shape = Shape::Table(&[
    key("kind", Shape::Text, "Where the kind of the failure stands, as a JSON pointer."),
    key("is", Shape::Pattern, "The kinds that are limits."),
    key("text", Shape::Text, "Where the CLI's words for it stand."),
    key("until", Shape::Pattern, "What in them says when it ends: the group `until`."),
]);

static HOOK_KEYS: Shape = Shape::Table(&[
    key("state", STATES, "The state that follows."),
    key("says", Shape::Text, "What that means, in words."),
    key("failed", Shape::Flag, "The turn is over because it failed."),
    key("prompt", Shape::Text, "Where the text of a turn stands, as a JSON pointer."),
    key("conversation", Shape::Text, "Where the id of the conversation stands."),
    key("fresh", part(&FRESH), "What says that nothing was said in it yet."),
    key("background", Shape::Text, "Where something stands that goes on after the turn."),
    key("limit", part(&LIMIT), "How it says that the turn ended at a limit."),
    key("waits_for_tools", Shape::Flag, "The CLI goes on when its hook returns."),
]);

static FRESH: Shape = Shape::Table(&[
    key("at", Shape::Text, "Where that stands, as a JSON pointer."),
    key("words", TEXTS, "The words that say so."),
]);
