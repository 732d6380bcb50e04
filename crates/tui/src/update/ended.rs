//! Shells that have ended: their panes leave the layout. Their entries and output stay until they are closed.

use patterm_wire::follow::{ProcessInfo, ProcessKind, ProcessStatus};

use super::panes::{remove, show_here};
use super::{Effect, keyboard};
use crate::layout::PaneId;
use crate::model::{Model, is_alive};
use crate::settings::EndedShells;

/// Removes the panes of shells that have ended since the state of the project was `before`.
pub(super) fn leave(model: &mut Model, before: &[ProcessInfo], effects: &mut Vec<Effect>) {
    let policy = model.settings.ended_shells;
    let processes = model.snapshot.processes.iter();
    let ended = processes.filter(|process| leaves(process, policy) && was_alive(process, before));
    let ended: Vec<(String, String)> =
        ended.map(|process| (process.id.clone(), process.name.clone())).collect();
    for (id, name) in ended {
        for pane in panes_of(model, &id) {
            let had_focus = model.focus == pane;
            leave_pane(model, pane, effects);
            let has_left = model.selected().is_none_or(|process| process.id != id);
            // After `exit`, the user expects this. Otherwise the rest of the input must not go to another process.
            if had_focus && has_left && !model.sent_line {
                keyboard::focus_lost(model, &name);
            }
        }
    }
}

/// Shells that agents have started stay where they are: somebody may want to read how they ended.
fn leaves(process: &ProcessInfo, policy: EndedShells) -> bool {
    let is_own_shell = process.kind == ProcessKind::Terminal && process.parent.is_none();
    let by_policy = match policy {
        EndedShells::Leave => true,
        EndedShells::LeaveIfZero => process.code == Some(0),
        EndedShells::Keep => false,
    };
    is_own_shell && process.status == ProcessStatus::Exited && by_policy
}

fn was_alive(process: &ProcessInfo, before: &[ProcessInfo]) -> bool {
    before.iter().any(|known| known.id == process.id && is_alive(known))
}

/// The panes of a process on all pages, except those that the user is reading.
fn panes_of(model: &Model, id: &str) -> Vec<PaneId> {
    let hidden = model.pages.iter().flat_map(|page| page.panes.iter());
    let all = model.panes.iter().chain(hidden);
    let shows = all.filter(|(_, pane)| pane.process == id && pane.scroll.is_none());
    shows.map(|(id, _)| *id).collect()
}

/// Removes a pane; if it is the last one, it shows another running process instead, if there is one.
fn leave_pane(model: &mut Model, pane: PaneId, effects: &mut Vec<Effect>) {
    let is_last = model.panes.len() == 1 && model.pages.len() == 1;
    if !is_last {
        remove(model, pane, effects);
        return;
    }
    let next = model.tree().into_iter().rev().find(|(_, process)| is_alive(process));
    if let Some(id) = next.map(|(_, process)| process.id.clone()) {
        show_here(model, &id, effects);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mode;
    use crate::sample::{Sample, project};
    use crate::update::Event;
    use crate::update::tests::{selected, sent};

    /// The shell and the lead side by side; then the shell ends.
    fn ended(settings: &str, keys: &str, change: impl Fn(&mut ProcessInfo)) -> Sample {
        let mut sample = Sample::new(120, 40);
        sample.handle(Event::Settings(Ok(settings.to_owned())));
        sample.type_in("\x02|5\r");
        sample.type_in(keys);
        let mut next = project();
        next.processes[4].status = ProcessStatus::Exited;
        next.processes[4].code = Some(0);
        change(&mut next.processes[4]);
        sample.handle(Event::Snapshot(next));
        sample
    }

    #[test]
    fn the_pane_of_a_shell_leaves_after_exit() {
        let mut sample = ended("", "exit\r", |_| ());
        assert_eq!((sample.model.panes.len(), selected(&sample)), (1, "p1"));
        assert_eq!(sent(sample.type_in("x")), "x", "typing continues");
        assert!(sample.model.process("p5").is_some(), "its entry stays");
        assert_eq!(ended("", "\x04", |shell| shell.code = Some(3)).model.panes.len(), 1);
    }

    #[test]
    fn input_in_the_middle_of_a_line_goes_to_no_other_process() {
        let mut sample = ended("", "exit\rhunter", |_| ());
        assert_eq!(sample.model.panes.len(), 1);
        assert!(matches!(sample.model.mode, Mode::Interrupted { .. }));
        assert_eq!(sent(sample.type_in("2\r")), "");
    }

    #[test]
    fn the_setting_and_the_starter_decide_whether_the_pane_leaves() {
        let stays = |sample: Sample| sample.model.panes.len() == 2;
        assert!(stays(ended("ended_shells = \"keep\"", "", |_| ())));
        let if_zero = "ended_shells = \"leave-if-0\"";
        assert!(stays(ended(if_zero, "", |shell| shell.code = Some(1))));
        assert!(!stays(ended(if_zero, "", |_| ())));
        assert!(stays(ended("", "", |shell| shell.parent = Some("p1".to_owned()))));
        assert!(stays(ended("", "", |shell| shell.kind = ProcessKind::Command)));
        assert!(stays(ended("", "", |shell| shell.status = ProcessStatus::Stopped)));
        assert!(stays(ended("", "\x02[", |_| ())), "the user reads its output");
    }

    #[test]
    fn the_pane_also_leaves_other_pages_and_the_last_pane_shows_a_running_process() {
        let mut sample = Sample::new(120, 40);
        sample.type_in("\x02|5\r\x02!\x020");
        let mut next = project();
        next.processes[4].status = ProcessStatus::Exited;
        sample.handle(Event::Snapshot(next));
        assert_eq!((sample.model.pages.len(), selected(&sample)), (1, "p1"));
        let mut sample = Sample::new(80, 24);
        sample.type_in("\x02s5\r");
        let mut next = project();
        next.processes[4].status = ProcessStatus::Exited;
        sample.handle(Event::Snapshot(next.clone()));
        assert_eq!(selected(&sample), "p3");
        next.processes.retain(|process| process.id == "p5");
        next.processes[0].status = ProcessStatus::Running;
        sample.handle(Event::Snapshot(next.clone()));
        assert_eq!(selected(&sample), "p5");
        next.processes[0].status = ProcessStatus::Exited;
        sample.handle(Event::Snapshot(next));
        assert_eq!(selected(&sample), "p5", "there is nothing else to show");
    }
}
