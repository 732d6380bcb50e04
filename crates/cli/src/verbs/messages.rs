//! `patterm messages`: prints messages between agents and people.

use clap::Args;
use patterm_store::clock::Clock;
use patterm_wire::requests::{MessageText, MessageTexts, Messages, MessagesRequest};
use serde_json::Value;

use crate::client::Client;
use crate::print::{one_line, print, print_json};

/// Print messages with their full text, sender, time and receipt
#[derive(Debug, Args)]
pub(crate) struct MessagesVerb {
    /// Only those from and to this process, or the message with this number
    #[arg(value_name = "ID")]
    which: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl MessagesVerb {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut client = Client::connect_to_read()?;
        let message_id = self.which.as_deref().and_then(|which| which.parse().ok());
        let process_id = match (&self.which, message_id) {
            (Some(which), None) => Some(client.resolve(which)?),
            _ => None,
        };
        let reply = client.query::<Messages>(&MessagesRequest { process_id, message_id })?;
        if let Some(id) = message_id.filter(|_| reply.result.messages.is_empty()) {
            anyhow::bail!("there is no message {id}; the last 200 are kept");
        }
        if self.json {
            return print_json(&reply.read_as::<MessageTexts<Value>>()?.messages);
        }
        let messages = reply.result.messages;
        match messages.is_empty() {
            true => print("no messages; `patterm message ID TEXT` sends one to an agent"),
            false => {
                let now = Clock::system().wall_ms();
                let all: Vec<_> = messages.iter().map(|message| shown(message, now)).collect();
                print(&all.join("\n\n"));
            }
        }
        Ok(())
    }
}

/// A message with everything known about it, its text indented.
fn shown(message: &MessageText, now: u64) -> String {
    let MessageText { message_id, kind, from, to, at, text, whole, state, evidence } = message;
    let [kind, from, to, state, evidence] =
        [kind, from, to, state, evidence].map(|text| one_line(text));
    let kind =
        if kind == "message" { String::new() } else { format!(", {}", kind.replace('_', " ")) };
    let ago = ago(now.saturating_sub(*at) / 1000);
    let lines: Vec<_> = text.lines().map(|line| format!("    {}", one_line(line))).collect();
    let rest = if *whole { "" } else { "\n    … the rest is no longer kept" };
    format!(
        "{message_id}  {from} → {to}{kind}, {ago} ago\n    {state}: {evidence}\n\n{}{rest}",
        lines.join("\n")
    )
}

/// A time in its largest unit.
fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_with_everything_known_about_it() {
        let message = MessageText {
            message_id: 7,
            kind: "first_prompt".into(),
            from: "human".into(),
            to: "p1".into(),
            at: 1_000,
            text: "do this\nthen\u{1b}[2J that".into(),
            whole: false,
            state: "delivered".into(),
            evidence: "its screen shows it".into(),
        };
        let expected = "7  human → p1, first prompt, 2 min ago\n    delivered: its screen shows it\n\n    \
            do this\n    then\\u{1b}[2J that\n    … the rest is no longer kept";
        assert_eq!(shown(&message, 121_000), expected);
        assert_eq!([ago(59), ago(7200), ago(200_000)], ["59 s", "2 h", "2 days"]);
    }
}
