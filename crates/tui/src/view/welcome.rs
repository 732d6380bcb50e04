//! The first screen: what there is, how to begin, how to leave.

use crate::action::{ACTIONS, Action};
use crate::canvas::Canvas;
use crate::model::Model;

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let area = model.panes_area();
    let lines = lines(model);
    let width = lines.iter().map(|line| crate::canvas::text_width(line)).max().unwrap_or(0);
    let room = area.middle(width as u16, lines.len() as u16);
    for (row, line) in lines.iter().take(usize::from(room.height)).enumerate() {
        let style = if row == 0 { &model.theme().accent } else { &model.theme().text };
        canvas.put_cut(room.x, room.y + row as u16, area.right(), line, style);
    }
}

fn lines(model: &Model) -> Vec<String> {
    let mut lines = vec!["patterm: the terminal in which agents work".to_owned(), String::new()];
    let mut say = |line: &str| lines.push(line.to_owned());
    if !model.begun {
        say("connecting…");
        return lines;
    }
    say("Nothing runs in this project yet.");
    say("");
    match &model.agents {
        None => say("Looking for agents…"),
        Some(agents) => {
            let found: Vec<_> =
                agents.iter().filter(|agent| agent.found).map(|a| a.title.as_str()).collect();
            match found.is_empty() {
                true => say("No agent's CLI was found; `patterm agents` says why."),
                false => say(&format!("Agents found: {}", found.join(", "))),
            }
        }
    }
    say("");
    let keys = &model.settings.keys;
    for (action, words) in [
        (Action::Agent, "start an agent"),
        (Action::Shell, "start a shell"),
        (Action::Help, "all keys"),
        (Action::Detach, "leave; what runs goes on, `patterm` returns"),
    ] {
        let entry = ACTIONS.iter().find(|entry| entry.action == action);
        if let Some(key) = entry.and_then(|entry| keys.shown(entry)) {
            say(&format!("  {key}  {words}"));
        }
    }
    let leader = keys.leader_name();
    say("");
    say(&format!("Once something runs, keys go to it, and {leader} stands"));
    say(&format!("before these. {leader} alone shows what it can do."));
    lines
}
