//! Carrying out what the core says.

use patterm_wire::follow::SelectionAnswer;
use patterm_wire::view::FromView;

use super::{Echo, Tui};
use crate::layout::PaneId;
use crate::link::{Broken, Calls, PaneLink};
use crate::outer::{self, Outer};
use crate::update::{Asked, Effect, Event};

/// Bytes that may wait for a server that is away: more than anybody types meanwhile.
const UNSENT_BYTES: usize = 64 << 10;

/// What was typed into a pane that has no connection now.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    /// The process that the pane showed.
    process: String,
    bytes: Vec<u8>,
}

impl Tui {
    pub(super) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Attach { pane, process, size, attends } => {
                self.panes.remove(&pane);
                let stream = self.door.open().ok().flatten();
                let sizes = self.model.settings.sizes;
                let begin = |stream| PaneLink::begin(stream, &process, size, sizes, attends).ok();
                if let Some(link) = stream.and_then(begin) {
                    self.panes.insert(pane, link);
                    // What was typed for another process, which the pane showed then, is for nobody.
                    let unsent = self.unsent.remove(&pane);
                    let unsent = unsent.filter(|unsent| unsent.process == process);
                    self.send(pane, unsent.map(|unsent| unsent.bytes).unwrap_or_default());
                }
            }
            Effect::Leave(pane) => {
                self.panes.remove(&pane);
                self.unsent.remove(&pane);
            }
            Effect::Send(pane, bytes) => {
                if pane == self.model.focus && self.echo == Echo::None {
                    self.echo = Echo::Awaited;
                }
                self.send(pane, bytes);
            }
            Effect::Size(pane, size) => self.tell_pane(pane, |pane| pane.resize(size)),
            Effect::Call { tool, arguments, asked } => self.call(tool, &arguments, asked),
            Effect::AnswerSelection { number, shown } => {
                let answer = SelectionAnswer { number, shown };
                let told = self.follow.as_mut().map(|follow| follow.answer_selection(answer));
                if matches!(told, Some(Err(Broken))) {
                    self.lose();
                }
            }
            Effect::Copy(text) => self.terminal.push(&outer::copy(&text)),
            Effect::Ring => self.terminal.push(b"\x07"),
            Effect::Notify(text) => self.terminal.push(&self.around.notify(&text)),
            Effect::Edit(pad) => self.edit(&pad),
            Effect::Quit(why) => self.quit = Some(why),
        }
    }

    /// Types into a pane. What is typed while the server is away waits for it.
    fn send(&mut self, id: PaneId, bytes: Vec<u8>) {
        if self.panes.contains_key(&id) {
            if !bytes.is_empty() {
                self.tell_pane(id, |pane| pane.say(&FromView::Input(bytes)));
            }
            return;
        }
        let Some(process) = self.model.panes.get(&id).map(|pane| &pane.process) else { return };
        let unsent = self.unsent.entry(id).or_default();
        if unsent.process != *process {
            *unsent = Unsent { process: process.clone(), bytes: Vec::new() };
        }
        if unsent.bytes.len() + bytes.len() <= UNSENT_BYTES {
            unsent.bytes.extend(bytes);
        }
    }

    fn tell_pane(&mut self, id: PaneId, say: impl FnOnce(&mut PaneLink) -> Result<(), Broken>) {
        let Some(pane) = self.panes.get_mut(&id) else { return };
        if say(pane).is_err() {
            self.panes.remove(&id);
        }
    }

    fn call(&mut self, tool: &str, arguments: &serde_json::Value, asked: Asked) {
        if self.calls.is_none() {
            let stream = self.door.open().ok().flatten();
            let greeting = self.door.greeting();
            self.calls = stream.and_then(|stream| Calls::begin(stream, &greeting).ok());
        }
        match &mut self.calls {
            Some(calls) => {
                if calls.call(tool, arguments, asked).is_err() {
                    self.drop_calls();
                }
            }
            None => {
                let why = "there is no server now; it is waited for".to_owned();
                self.happen(Event::Answer(asked, Err(why)));
            }
        }
    }

    fn edit(&mut self, pad: &str) {
        let door = &self.door;
        let edited = self.terminal.lend(|| door.edit(pad));
        (self.shown, self.outer, self.title) = (None, Outer::default(), String::new());
        let (width, height) = self.terminal.size();
        self.happen(Event::Resized(width, height));
        if let Ok(Err(why)) = edited {
            self.happen(Event::Answer(Asked::Nothing, Err(why)));
        }
    }
}
