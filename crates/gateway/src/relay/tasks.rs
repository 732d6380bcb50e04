//! Whose tasks are whose. A server that several callers share knows one client only, and would show each
//! of them the tasks of all: their arguments, their results, and the way to cancel them.

use std::collections::{HashMap, VecDeque};

use patterm_wire::ErrorObject;
use serde_json::value::RawValue;

use super::{Ask, Pending, Relay};
use crate::ambiguous::is_taken_for;
use crate::raw;

/// The request for all tasks.
const LIST: &str = "tasks/list";

/// What the methods of tasks begin with.
const PREFIX: &str = "tasks/";

/// Tasks whose callers are remembered in one session: more than a server keeps. The oldest are forgotten
/// first, and no caller reaches them then.
const TASKS: usize = 10_000;

/// The callers of tasks, by the server's ids.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    callers: HashMap<String, String>,
    order: VecDeque<String>,
}

impl Tasks {
    /// Notes who created a task. A server that gives an id a second time does not take the task away
    /// from its first caller.
    fn note(&mut self, task: String, caller: &str) {
        if self.callers.contains_key(&task) {
            return;
        }
        if self.order.len() == TASKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.callers.remove(&oldest);
        }
        self.order.push_back(task.clone());
        self.callers.insert(task, caller.to_owned());
    }

    fn caller_of(&self, task: &str) -> Option<&String> {
        self.callers.get(task)
    }
}

/// Whether a notification says how a task stands.
pub(super) fn is_about_task(method: &str) -> bool {
    method.starts_with("notifications/tasks")
}

/// Whether a request is about tasks, for a server that does not care for case or blanks, too.
fn asks_for_task(method: &str) -> bool {
    let method = method.trim();
    let end = method.char_indices().nth(PREFIX.len()).map_or(method.len(), |(at, _)| at);
    is_taken_for(&method[..end], PREFIX)
}

/// The id of a task at a path.
fn task_at(text: &str, path: &[&str]) -> Option<String> {
    serde_json::from_str(text.get(raw::at_path(text, path)?)?).ok()
}

impl<R> Relay<R> {
    /// Refuses a request about a task that is not this caller's.
    pub(super) fn check_task(&self, ask: &Ask<R>) -> Result<(), ErrorObject> {
        if !self.terms.shared || ask.method == LIST || !asks_for_task(&ask.method) {
            return Ok(());
        }
        let Some(task) = task_at(&ask.text, &["params", "taskId"]) else {
            let why = format!("{} takes the id of one of your tasks as `taskId`", ask.method);
            return Err(ErrorObject::invalid_params(why));
        };
        if self.is_task_of(&task, ask.line) {
            return Ok(());
        }
        let why = format!(
            "you have no task {task:?} here; tasks of other callers, and those from before the server \
             was last started, cannot be reached"
        );
        Err(ErrorObject::invalid_params(why))
    }

    fn is_task_of(&self, task: &str, line: super::LineId) -> bool {
        let caller = self.lines.get(&line).map(|line| &line.caller);
        caller.is_some() && self.tasks.caller_of(task) == caller
    }

    /// Notes the task that an answer tells of, if its request was the one that created it.
    pub(super) fn note_task(&mut self, pending: &Pending<R>, text: &str) {
        if !self.terms.shared || asks_for_task(&pending.method) {
            return;
        }
        // With the task in a member of its own, as 2025-11-25 has it, or as the result itself.
        let task = task_at(text, &["result", "task", "taskId"])
            .or_else(|| task_at(text, &["result", "taskId"]));
        let caller = self.lines.get(&pending.line).map(|line| line.caller.clone());
        if let (Some(task), Some(caller)) = (task, caller) {
            self.tasks.note(task, &caller);
        }
    }

    /// The edit that leaves only a caller's own tasks in a list, each as it stood.
    pub(super) fn own_tasks_edit(
        &self,
        pending: &Pending<R>,
        text: &str,
    ) -> Option<(raw::Span, String)> {
        if !self.terms.shared || pending.method != LIST {
            return None;
        }
        let span = raw::at_path(text, &["result", "tasks"])?;
        let all: Vec<&RawValue> = serde_json::from_str(&text[span.clone()]).unwrap_or_default();
        let is_own = |task: &&&RawValue| {
            let id = task_at(task.get(), &["taskId"]);
            id.is_some_and(|id| self.is_task_of(&id, pending.line))
        };
        let own: Vec<&str> = all.iter().filter(is_own).map(|task| task.get()).collect();
        Some((span, format!("[{}]", own.join(","))))
    }

    /// Whose task a notification is about.
    pub(super) fn owner_of_told(&self, text: &str) -> Option<String> {
        let task = task_at(text, &["params", "taskId"])?;
        self.tasks.caller_of(&task).cloned()
    }
}
