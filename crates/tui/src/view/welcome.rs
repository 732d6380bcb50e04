//! The first screen: what there is, how to begin, how to leave.

use super::look;
use crate::canvas::Canvas;
use crate::model::Model;

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let area = model.panes_area();
    let lines = lines(model);
    let width = lines.iter().map(|line| crate::canvas::text_width(line)).max().unwrap_or(0);
    let room = area.middle(width as u16, lines.len() as u16);
    for (row, line) in lines.iter().take(usize::from(room.height)).enumerate() {
        let style = if row == 0 { look::accent() } else { look::plain() };
        canvas.put_cut(room.x, room.y + row as u16, area.right(), line, &style);
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
    say("  a  start an agent");
    say("  c  start a shell");
    say("  ?  all keys");
    say("  d  leave; what runs goes on, `patterm` returns");
    say("");
    say("Once something runs, keys go to it, and ctrl+b stands");
    say("before these. ctrl+b alone shows what it can do.");
    lines
}
