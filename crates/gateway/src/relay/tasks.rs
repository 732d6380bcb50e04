//! Separates the tasks of callers. A shared server knows only one client and would show each caller
//! the tasks of all: their arguments, their results, and how to cancel them.

use std::collections::{HashMap, VecDeque};

use patterm_wire::ErrorObject;
use serde_json::value::RawValue;

use super::{ClientRequest, Pending, Relay};
use crate::ambiguous::folds_to;
use crate::raw;

/// The request for a list of tasks.
const LIST: &str = "tasks/list";

/// The prefix of all task methods.
const PREFIX: &str = "tasks/";

/// Tasks whose callers are remembered in one session: more than a server keeps. The oldest are
/// dropped first, and no caller reaches them then.
const TASKS: usize = 10_000;

/// The callers of tasks, by the server's ids.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    callers: HashMap<String, String>,
    order: VecDeque<String>,
}

impl Tasks {
    /// Records who created a task. If a server uses an id again, the task still belongs to its
    /// first caller.
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

/// Whether a notification reports the status of a task.
pub(super) fn is_about_task(method: &str) -> bool {
    method.starts_with("notifications/tasks")
}

/// Whether a request is about tasks, even if its server ignores case or blanks.
fn asks_for_task(method: &str) -> bool {
    let method = method.trim();
    let end = method.char_indices().nth(PREFIX.len()).map_or(method.len(), |(at, _)| at);
    folds_to(&method[..end], PREFIX)
}

/// The task id at a path.
fn task_at(text: &str, path: &[&str]) -> Option<String> {
    serde_json::from_str(text.get(raw::at_path(text, path)?)?).ok()
}

impl<R> Relay<R> {
    /// Refuses a request about a task of another caller.
    pub(super) fn check_task(&self, request: &ClientRequest<R>) -> Result<(), ErrorObject> {
        if !self.config.shared || request.method == LIST || !asks_for_task(&request.method) {
            return Ok(());
        }
        let Some(task) = task_at(&request.text, &["params", "taskId"]) else {
            let why = format!("{} needs the id of one of your tasks as `taskId`", request.method);
            return Err(ErrorObject::invalid_params(why));
        };
        if self.is_task_of(&task, request.client) {
            return Ok(());
        }
        let why = format!(
            "you have no task {task:?} here; tasks of other callers, and tasks from before the \
             server's last start, are not accessible"
        );
        Err(ErrorObject::invalid_params(why))
    }

    fn is_task_of(&self, task: &str, client: super::ClientId) -> bool {
        let caller = self.clients.get(&client).map(|client| &client.caller);
        caller.is_some() && self.tasks.caller_of(task) == caller
    }

    /// Records the task in a response, if its request created one.
    pub(super) fn note_task(&mut self, pending: &Pending<R>, text: &str) {
        if !self.config.shared || asks_for_task(&pending.method) {
            return;
        }
        // In a member of its own, as in 2025-11-25, or as the result itself.
        let task = task_at(text, &["result", "task", "taskId"])
            .or_else(|| task_at(text, &["result", "taskId"]));
        let caller = self.clients.get(&pending.client).map(|client| client.caller.clone());
        if let (Some(task), Some(caller)) = (task, caller) {
            self.tasks.note(task, &caller);
        }
    }

    /// The edit that reduces a list to the caller's own tasks, each unchanged.
    pub(super) fn own_tasks_edit(
        &self,
        pending: &Pending<R>,
        text: &str,
    ) -> Option<(raw::Span, String)> {
        if !self.config.shared || pending.method != LIST {
            return None;
        }
        let span = raw::at_path(text, &["result", "tasks"])?;
        let all: Vec<&RawValue> = serde_json::from_str(&text[span.clone()]).unwrap_or_default();
        let is_own = |task: &&&RawValue| {
            let id = task_at(task.get(), &["taskId"]);
            id.is_some_and(|id| self.is_task_of(&id, pending.client))
        };
        let own: Vec<&str> = all.iter().filter(is_own).map(|task| task.get()).collect();
        Some((span, format!("[{}]", own.join(","))))
    }

    /// The caller of the task that a notification is about.
    pub(super) fn task_owner(&self, text: &str) -> Option<String> {
        let task = task_at(text, &["params", "taskId"])?;
        self.tasks.caller_of(&task).cloned()
    }
}
