//! The usual call and its usual answer, without detours: nothing to wait for, to translate or to
//! remember, and one pass over the answer. Everything else takes the general path.

use patterm_wire::Id;

use super::era::{Era, Translation};
use super::handshake::{HandshakeState, Need};
use super::{ClientId, Output, Pending, Relay, UpstreamId};
use crate::json_scan::Cursor;

/// The method of a usual call.
const CALL: &str = "tools/call";

/// What an older server's result lacks.
const COMPLETE: &str = "\"resultType\":\"complete\"";

impl<R> Relay<R> {
    /// Begins a usual call; returns the id under which the caller must write it to the server. `None`
    /// if it cannot be written as it is now.
    pub(crate) fn begin_usual(
        &mut self,
        client: ClientId,
        id: &Id,
        era: Era,
        token: Option<&str>,
        reply: R,
    ) -> Option<UpstreamId> {
        // The server's requests go to the stream of the call, which a usual call does not have.
        if self.config.exclusive {
            return None;
        }
        if self.handshake != HandshakeState::Ready || self.need(era) != Need::Nothing {
            return None;
        }
        let translation = match era {
            Era::Modern if self.eras.modern == Some(true) => Translation::None,
            Era::Modern => Translation::Down,
            Era::Legacy if self.hello.initialize.is_some() => Translation::None,
            Era::Legacy => return None,
        };
        if self.config.in_flight != 0 && self.in_flight() >= self.config.in_flight {
            return None;
        }
        if self.clients.get(&client)?.calls.contains_key(id) {
            return None;
        }
        let upstream = self.next_upstream_id();
        let state = self.clients.get_mut(&client)?;
        state.stateless = era == Era::Modern;
        if state.stateless {
            state.log_level = None;
        }
        state.calls.insert(id.clone(), Some(upstream));
        let (id, method, token) = (id.clone(), CALL.into(), token.map(str::to_owned));
        let pending = Pending { client, id, method, translation, token, reply };
        self.pending.insert(upstream, pending);
        Some(upstream)
    }

    /// A usual call was not written.
    pub(crate) fn take_back(&mut self, upstream: UpstreamId) {
        self.forget(upstream);
    }

    /// Handles the usual answer to a call, or a report of its progress; `None` if the line is
    /// anything else.
    pub(super) fn receive_usual(&mut self, line: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(line.trim_ascii()).ok()?;
        match Answer::read(text.as_bytes()) {
            Some(answer) => self.receive_usual_answer(text.as_bytes(), answer),
            None => self.receive_usual_progress(text),
        }
    }

    fn receive_usual_progress(&mut self, text: &str) -> Option<()> {
        let span = progress_token(text.as_bytes())?;
        let pending = self.pending.get(&UpstreamId::parse(text.get(span.clone())?)?)?;
        let token = pending.token.as_deref()?;
        let mut edited = String::with_capacity(text.len() + token.len());
        edited.push_str(&text[..span.start]);
        edited.push_str(token);
        edited.push_str(&text[span.end..]);
        let (client, request_id) = (pending.client, Some(pending.id.clone()));
        self.out.push(Output::Notify { client, request_id, text: edited });
        Some(())
    }

    fn receive_usual_answer(&mut self, line: &[u8], answer: Answer) -> Option<()> {
        let upstream = UpstreamId::parse(std::str::from_utf8(&line[answer.id.clone()]).ok()?)?;
        let pending = self.pending.get(&upstream)?;
        if pending.method != CALL || pending.translation == Translation::Up {
            return None;
        }
        if self.config.shared && answer.names_task {
            return None;
        }
        let is_incomplete = pending.translation == Translation::Down && !answer.has_type;
        let pending = self.forget(upstream)?;
        let mut body =
            Vec::with_capacity(line.len() + pending.id.as_json().len() + COMPLETE.len() + 1);
        let id = (answer.id, pending.id.as_json(), "");
        let opening = answer.result.start + 1;
        let comma = if answer.is_empty { "" } else { "," };
        let kind = (opening..opening, COMPLETE, comma);
        let edits = if answer.result.start < id.0.start { [kind, id] } else { [id, kind] };
        let mut from = 0;
        for (span, by, then) in edits.into_iter().filter(|edit| is_incomplete || !edit.0.is_empty())
        {
            body.extend_from_slice(&line[from..span.start]);
            body.extend_from_slice(by.as_bytes());
            body.extend_from_slice(then.as_bytes());
            from = span.end;
        }
        body.extend_from_slice(&line[from..]);
        self.out.push(Output::Answer(pending.reply, body));
        Some(())
    }
}

/// An answer with a result and nothing else.
struct Answer {
    id: std::ops::Range<usize>,
    result: std::ops::Range<usize>,
    /// The result has no members.
    is_empty: bool,
    /// The result names its type.
    has_type: bool,
    /// The result may be a task.
    names_task: bool,
}

/// The position of the progress token in a report of progress with nothing unusual in it.
fn progress_token(line: &[u8]) -> Option<std::ops::Range<usize>> {
    let (mut token, mut version, mut is_progress, mut has_params) = (None, None, false, false);
    let mut cursor = Cursor::new(line);
    cursor.object(|cursor, name| match name {
        b"jsonrpc" => version.replace(cursor.value()?).is_none().then_some(()),
        b"method" => {
            let method = cursor.value()?;
            let is_new = !std::mem::replace(&mut is_progress, true);
            (is_new && &line[method] == b"\"notifications/progress\"").then_some(())
        }
        b"params" => {
            cursor.object(|cursor, name| match name {
                b"progressToken" => token.replace(cursor.value()?).is_none().then_some(()),
                b"_meta" => None,
                _ => cursor.value().map(drop),
            })?;
            (!std::mem::replace(&mut has_params, true)).then_some(())
        }
        _ => None,
    })?;
    cursor.end()?;
    (is_progress && &line[version?] == b"\"2.0\"").then_some(token?)
}

impl Answer {
    /// Reads a line, which must be UTF-8.
    fn read(line: &[u8]) -> Option<Self> {
        let (mut id, mut result, mut version) = (None, None, None);
        let (mut is_empty, mut has_type, mut names_task) = (true, false, false);
        let mut cursor = Cursor::new(line);
        cursor.object(|cursor, name| match name {
            b"jsonrpc" => version.replace(cursor.value()?).is_none().then_some(()),
            b"id" => id.replace(cursor.value()?).is_none().then_some(()),
            b"result" => {
                let start = cursor.position();
                cursor.object(|cursor, name| {
                    is_empty = false;
                    has_type |= name == b"resultType";
                    names_task |= name == b"task" || name == b"taskId";
                    cursor.value().map(drop)
                })?;
                result.replace(start..cursor.position()).is_none().then_some(())
            }
            _ => None,
        })?;
        cursor.end()?;
        (&line[version?] == b"\"2.0\"").then_some(Self {
            id: id?,
            result: result?,
            is_empty,
            has_type,
            names_task,
        })
    }
}
