//! The welcome screen of an empty project.

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
    let mut add = |line: &str| lines.push(line.to_owned());
    if !model.has_snapshot {
        add("connecting…");
        return lines;
    }
    add("Nothing is running in this project yet.");
    add("");
    match &model.agents {
        None => add("Looking for agents…"),
        Some(agents) => {
            let found: Vec<_> =
                agents.iter().filter(|agent| agent.found).map(|a| a.title.as_str()).collect();
            match found.is_empty() {
                true => add("No agent CLI was found; `patterm agents` says why."),
                false => add(&format!("Agents found: {}", found.join(", "))),
            }
        }
    }
    add("");
    let keys = &model.settings.keys;
    for (action, text) in [
        (Action::Agent, "start an agent"),
        (Action::NewPage, "start a shell"),
        (Action::Help, "all keys"),
        (Action::Detach, "leave; everything keeps running"),
    ] {
        let entry = ACTIONS.iter().find(|entry| entry.action == action);
        if let Some(key) = entry.and_then(|entry| keys.shown(entry)) {
            add(&format!("  {key}  {text}"));
        }
    }
    let leader = keys.leader_name();
    add("");
    add("Once something is running, your keys go to it. Press");
    add(&format!("{leader} before these keys, or by itself to list them."));
    if model.shares_tmux_prefix() {
        add("");
        add(&format!("The outer tmux uses {leader} too: press it twice, or"));
        add(&format!("choose another key in {}:", model.settings_path));
        add("  leader = \"ctrl+g\"");
    }
    lines
}
