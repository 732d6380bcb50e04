//! Labels on panes, by which one key goes to a pane.

use crate::canvas::{Canvas, Rect, text_width};
use crate::layout::Layout;
use crate::model::Model;

pub(super) fn draw(model: &Model, canvas: &mut Canvas) {
    let (places, _) = model.places();
    let labels = model.layout.as_ref().map(Layout::labels).unwrap_or_default();
    for (id, room) in places {
        let Some((label, _)) = labels.iter().find(|(_, pane)| *pane == id) else { continue };
        let pane = model.panes.get(&id).and_then(|pane| model.process(&pane.process));
        let name = pane.map(|process| process.name.as_str()).unwrap_or_default();
        let text = format!(" {label}  {name} ");
        let text =
            if text_width(&text) + 2 > usize::from(room.width) { label.to_string() } else { text };
        let style = if id == model.focus { &model.theme().bar } else { &model.theme().accent };
        let (width, body) = (text_width(&text) as u16, model.body(room));
        // A frame around it, if there is space for one.
        let place = if body.height < 3 || body.width < width + 2 {
            body
        } else {
            let frame = body.middle(width + 2, 3);
            canvas.clear(frame, &model.theme().text);
            canvas.frame(frame, "", &model.theme().accent);
            frame.inner()
        };
        let at = Rect { height: 1, ..place }.middle(width, 1);
        canvas.put_cut(at.x, at.y, at.right(), &text, style);
    }
}
