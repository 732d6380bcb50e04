//! What happened: one variant per type of event, with its data. A fact of a newer version is only known as an
//! [`super::EventRecord`].

use serde::{Deserialize, Serialize};

/// A share of the log's size. Events of one class never take the place of another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventClass {
    /// Calls of tools, and input: an agent in a loop can cause any number of them.
    Calls,
    /// States of processes, agents, timers, ports, servers and views.
    States,
    /// What people do, messages, scratchpads and approvals.
    People,
}

impl EventClass {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Calls, Self::States, Self::People];

    /// Its name in the names of files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::States => "states",
            Self::People => "people",
        }
    }
}

/// What shows who made a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitEvidence {
    /// A git command of a process's pane was running in the working tree when the commit was written.
    ProcessTree,
    /// Only the repository and the time: such a command was running in the same second.
    #[default]
    Time,
    /// Something that a newer server knows.
    #[serde(untagged)]
    Other(String),
}

/// What shows who answered a dialog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEvidence {
    /// The option was chosen in patterm, which typed the keys for it.
    #[default]
    Chosen,
    /// The dialog closed after somebody had typed into its pane; what was typed is not known.
    Typed,
    /// Something that a newer server knows.
    #[serde(untagged)]
    Other(String),
}

/// Whether a value is left out of an event.
trait Absent {
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Vec<T> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for bool {
    fn is_absent(&self) -> bool {
        !self
    }
}

impl Absent for String {}
impl Absent for GitEvidence {}

impl Absent for AnswerEvidence {
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

impl Absent for u64 {}
impl Absent for i64 {}
impl Absent for i32 {}
impl Absent for u16 {}

/// Declares the types of events: the name, the class, and the members of the data. A missing member counts as its
/// default, since the event may be older.
macro_rules! facts {
    ($($(#[$doc:meta])* $fact:ident = $name:literal in $class:ident {
        $($(#[$about:meta])* $member:ident: $kind:ty,)*
    })*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "data")]
        pub enum Fact {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $fact {
                    $(
                        $(#[$about])*
                        #[serde(default, skip_serializing_if = "Absent::is_absent")]
                        $member: $kind,
                    )*
                },
            )*
        }

        impl Fact {
            /// The names of all types.
            pub const TYPES: &[&str] = &[$($name,)*];

            /// The name of its type.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$fact { .. } => $name,)*
                }
            }

            /// Its class.
            #[must_use]
            pub fn class(&self) -> EventClass {
                match self {
                    $(Self::$fact { .. } => EventClass::$class,)*
                }
            }

            /// The class of the type with this name.
            #[must_use]
            pub fn class_of(name: &str) -> Option<EventClass> {
                match name {
                    $($name => Some(EventClass::$class),)*
                    _ => None,
                }
            }
        }
    };
}

facts! {
    /// A process has an entry.
    ProcessCreated = "process.created" in States {
        /// Its label.
        name: String,
        /// `agent`, `command` or `terminal`.
        kind: String,
        /// The preset of an agent.
        preset: Option<String>,
        /// The process that started it.
        parent: Option<String>,
    }
    /// A run of a process began.
    ProcessStarted = "process.started" in States {}
    /// A run ended by itself, or the program could not be started.
    ProcessExited = "process.exited" in States {
        /// The exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Why it could not be started.
        error: Option<String>,
    }
    /// A run was ended on request.
    ProcessStopped = "process.stopped" in States {
        /// The exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    }
    /// A process got a signal that was asked for.
    ProcessSignalled = "process.signalled" in States {
        /// The signal.
        signal: i32,
    }
    /// The run that has just begun replaces an earlier one.
    ProcessRestarted = "process.restarted" in States {
        /// Why patterm started it again.
        reason: Option<String>,
    }
    /// A process has another label.
    ProcessRenamed = "process.renamed" in States {
        /// The new label.
        name: String,
        /// The old one.
        before: String,
    }
    /// An entry was removed, with its output.
    ProcessClosed = "process.closed" in States {}
    /// It is unknown how a run ended.
    ProcessLost = "process.lost" in States {}

    /// An agent's CLI shows its prompt for the first time in this run.
    AgentReady = "agent.ready" in States {
        /// The evidence.
        reason: String,
    }
    /// An agent began to work.
    AgentWorking = "agent.working" in States {
        /// The evidence.
        reason: String,
    }
    /// An agent waits for its next task.
    AgentIdle = "agent.idle" in States {
        /// The evidence.
        reason: String,
    }
    /// An agent waits for a person.
    AgentBlocked = "agent.blocked" in States {
        /// The evidence.
        reason: String,
        /// What its dialog asks.
        question: Option<String>,
        /// What the dialog offers.
        options: Vec<String>,
    }
    /// A turn of an agent failed.
    AgentFailed = "agent.failed" in States {
        /// The evidence.
        reason: String,
    }
    /// An agent reached a usage limit.
    AgentLimited = "agent.limited" in States {
        /// The evidence.
        reason: String,
        /// When the limit ends, in the words of the CLI.
        until: Option<String>,
    }
    /// A limit is over, or an interrupted agent continues.
    AgentResumed = "agent.resumed" in States {
        /// The evidence.
        reason: String,
    }
    /// An agent's turn ended.
    AgentTurnEnded = "agent.turn_ended" in States {
        /// How long it took, in milliseconds of a monotonic clock.
        ms: u64,
        /// The tokens it used, if the CLI says so.
        tokens: Option<u64>,
    }
    /// A dialog of an agent's CLI was answered.
    DialogAnswered = "dialog.answered" in People {
        /// What it asked.
        question: String,
        /// The option that was chosen.
        option: Option<String>,
        /// The key that was pressed.
        key: Option<String>,
        /// What shows who answered it: `chosen`, which is left out, or `typed`.
        evidence: AnswerEvidence,
    }
    /// A burst of input by one actor. Its content is not stored, nor a hash of it.
    InputSent = "input.sent" in Calls {
        /// Its length in bytes.
        length: u64,
    }
    /// A message, first prompt or timer's text is stored until it is delivered.
    MessageAccepted = "message.accepted" in People {
        /// Its number.
        message_id: u64,
        /// `message`, `first_prompt` or `timer`.
        kind: String,
        /// Its length in bytes.
        length: u64,
        /// Its text, if the settings say that texts are stored.
        text: Option<String>,
    }
    /// The CLI accepted a message.
    MessageDelivered = "message.delivered" in People {
        /// Its number.
        message_id: u64,
        /// What that is based on.
        evidence: String,
    }
    /// A message could not be delivered at once, and waits.
    MessageQueued = "message.queued" in People {
        /// Its number.
        message_id: u64,
        /// What it waits for.
        evidence: String,
    }
    /// A message was typed, but nothing shows that the CLI accepted it.
    MessageStalled = "message.stalled" in People {
        /// Its number.
        message_id: u64,
        /// What that is based on.
        evidence: String,
    }
    /// A message will not be delivered.
    MessageDropped = "message.dropped" in People {
        /// Its number.
        message_id: u64,
        /// Why.
        reason: String,
    }
    /// A timer was set.
    TimerSet = "timer.set" in States {
        /// Its id.
        timer_id: String,
        /// `delay`, `idle_any`, `idle_all` or `exit`.
        kind: String,
        /// Its label.
        label: Option<String>,
    }
    /// A timer fired: its text is a message now.
    TimerFired = "timer.fired" in States {
        /// Its id.
        timer_id: String,
    }
    /// A timer was stopped until it is resumed.
    TimerPaused = "timer.paused" in States {
        /// Its id.
        timer_id: String,
    }
    /// A paused timer continues.
    TimerResumed = "timer.resumed" in States {
        /// Its id.
        timer_id: String,
    }
    /// A timer ended without firing.
    TimerCancelled = "timer.cancelled" in States {
        /// Its id.
        timer_id: String,
        /// `cancelled` or `owner_closed`.
        reason: Option<String>,
    }
    /// A scratchpad was created.
    PadCreated = "pad.created" in People {
        /// Its name.
        name: String,
        /// Its revision.
        revision: u64,
        /// Its length.
        bytes: u64,
    }
    /// A scratchpad was written.
    PadWritten = "pad.written" in People {
        /// Its name.
        name: String,
        /// Its new revision.
        revision: u64,
        /// Its new length.
        bytes: u64,
    }
    /// Text was appended to a scratchpad.
    PadAppended = "pad.appended" in People {
        /// Its name.
        name: String,
        /// Its new revision.
        revision: u64,
        /// Its new length.
        bytes: u64,
    }
    /// The file of a scratchpad was changed by something other than patterm.
    PadEditedOutside = "pad.edited_outside" in People {
        /// Its name.
        name: String,
        /// Its new revision.
        revision: u64,
        /// Its new length.
        bytes: u64,
    }
    /// A scratchpad was deleted.
    PadDeleted = "pad.deleted" in People {
        /// Its name.
        name: String,
    }
    /// A process needs a person's attention.
    AttentionRaised = "attention.raised" in People {
        /// Why.
        reason: String,
    }
    /// It no longer does.
    AttentionCleared = "attention.cleared" in People {}
    /// A process listens on a port.
    PortOpened = "port.opened" in States {
        /// The port.
        port: u16,
    }
    /// It no longer does.
    PortClosed = "port.closed" in States {
        /// The port.
        port: u16,
    }
    /// A shared MCP server runs.
    ServerStarted = "server.started" in States {
        /// Its name.
        server: String,
        /// The caller that this instance is for, unless all callers share it.
        owner: Option<String>,
    }
    /// A shared MCP server could not be started, or failed.
    ServerFailed = "server.failed" in States {
        /// Its name.
        server: String,
        /// The caller that this instance is for, unless all callers share it.
        owner: Option<String>,
        /// What happened.
        error: String,
    }
    /// A shared MCP server ended.
    ServerStopped = "server.stopped" in States {
        /// Its name.
        server: String,
        /// The caller that this instance is for, unless all callers share it.
        owner: Option<String>,
    }
    /// A hook failed for the first time since it last succeeded, or events began to wait too long for it.
    HookFailed = "hook.failed" in States {
        /// Its name.
        hook: String,
        /// What happened.
        reason: String,
    }
    /// A call of one of patterm's tools that change something.
    ToolCalled = "tool.called" in Calls {
        /// The tool.
        tool: String,
        /// `ok`, or the kind of error.
        outcome: String,
        /// How long it took, in milliseconds of a monotonic clock.
        ms: u64,
    }
    /// A commit was made.
    GitCommit = "git.commit" in States {
        /// Its full hash.
        commit: String,
        /// The first line of its message, without its end if it is long.
        subject: Option<String>,
        /// The branch, unless none was checked out.
        branch: Option<String>,
        /// The folder of the working tree.
        repository: String,
        /// The command that made it, such as `commit`, or `pull/rebase` for a rebase that a pull started.
        command: String,
        /// The first files that it changes; those of a merge against its first parent.
        files: Vec<String>,
        /// How many files it changes, unless it changes too much to count.
        file_count: Option<u64>,
        /// How many lines it adds to text files.
        insertions: Option<u64>,
        /// How many lines it removes from text files.
        deletions: Option<u64>,
        /// When the command ended; the event may be recorded later.
        ended_at: String,
        /// What shows who made it.
        evidence: GitEvidence,
    }
    /// Another branch was checked out.
    GitBranch = "git.branch" in States {
        /// The branch; a hash if it is none.
        branch: String,
        /// The previous one.
        before: Option<String>,
        /// The folder of the working tree.
        repository: String,
        /// What shows who did it.
        evidence: GitEvidence,
    }
    /// A worktree was created.
    WorktreeCreated = "worktree.created" in People {
        /// Its folder.
        path: String,
        /// Its branch.
        branch: Option<String>,
    }
    /// The branch of a worktree was merged.
    WorktreeMerged = "worktree.merged" in People {
        /// Its folder.
        path: String,
        /// Its branch.
        branch: Option<String>,
    }
    /// A worktree was removed.
    WorktreeRemoved = "worktree.removed" in People {
        /// Its folder.
        path: String,
    }
    /// The content of the project file has changed.
    ProjectFileChanged = "project_file.changed" in People {
        /// The hash of the content.
        hash: Option<String>,
    }
    /// A person trusted this content of the project file.
    ProjectFileTrusted = "project_file.trusted" in People {
        /// The hash of the content.
        hash: String,
    }
    /// A view of a process was attached.
    ViewAttached = "view.attached" in States {}
    /// It was detached.
    ViewDetached = "view.detached" in States {}
    /// A server started.
    SystemStarted = "system.started" in People {
        /// Its version.
        version: String,
    }
    /// A server took over from one of another version.
    SystemUpgraded = "system.upgraded" in People {
        /// The new version.
        version: String,
        /// The previous version, if it is known.
        before: Option<String>,
    }
    /// The log was repaired.
    SystemRecovered = "system.recovered" in People {
        /// Bytes of events at its end that were not written completely and never acknowledged.
        torn_bytes: u64,
        /// The first and last numbers of events that were lost when the machine stopped.
        lost: Vec<(u64, u64)>,
        /// Events that a full disk had no room for.
        not_stored: Option<u64>,
    }
    /// The wall clock was set.
    SystemClockChanged = "system.clock_changed" in People {
        /// The time that the clock showed before, continued until now.
        before: String,
        /// How far it was set forward, in milliseconds; negative for back.
        ms: i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_its_name_and_its_data_has_only_what_is_known() {
        let fact = Fact::ProcessExited { code: Some(0), signal: None, error: None };
        let text = serde_json::to_string(&fact).unwrap();
        assert_eq!(text, r#"{"type":"process.exited","data":{"code":0}}"#);
        assert_eq!(serde_json::from_str::<Fact>(&text).unwrap(), fact);
        assert_eq!((fact.name(), fact.class()), ("process.exited", EventClass::States));
        let older = serde_json::from_str::<Fact>(r#"{"type":"tool.called","data":{"new":1}}"#);
        assert_eq!(older.unwrap().class(), EventClass::Calls);
        for name in Fact::TYPES {
            assert!(Fact::class_of(name).is_some(), "{name}");
        }
        assert_eq!(Fact::class_of("agent.dreaming"), None);
    }
}
