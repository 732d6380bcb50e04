//! Progress notifications for callers.

use patterm_wire::reply;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// Sends progress to a caller that gave a token for it; otherwise does nothing.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    to: Option<(Box<RawValue>, mpsc::Sender<Vec<u8>>)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    progress_token: &'a RawValue,
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    message: &'a str,
}

impl Progress {
    pub(crate) fn new(token: Box<RawValue>, notices: mpsc::Sender<Vec<u8>>) -> Self {
        Self { to: Some((token, notices)) }
    }

    /// Whether the caller wants progress.
    pub fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// Reports the progress of the call. The report is dropped if the caller does not keep up.
    pub fn report(&self, progress: f64, total: Option<f64>, message: &str) {
        let Some((token, notices)) = &self.to else { return };
        let params = ProgressParams { progress_token: token, progress, total, message };
        if let Ok(params) = serde_json::to_string(&params) {
            let _ = notices.try_send(reply::notification("notifications/progress", Some(&params)));
        }
    }
}
