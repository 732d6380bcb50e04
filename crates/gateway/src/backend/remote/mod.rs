//! Remote servers that speak Streamable HTTP. Each line for such a server becomes a POST, and its
//! response, JSON or events, becomes lines again.

mod call;
mod events;
mod link;
mod way;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::duplex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Backend, Channel, Later, Life};
use crate::refusal::Refusal;
use link::Link;

/// Bytes buffered in each direction.
const PIPE_BYTES: usize = 256 << 10;

/// How long ending the session may take.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// A remote server.
#[derive(Clone)]
pub struct Remote {
    /// Its URL: `https://…` or `http://…`.
    pub url: String,
    /// Headers of every request, tokens included.
    pub headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Remote").field("url", &self.url).field("headers", &names).finish()
    }
}

impl Backend for Remote {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let link = Link::new(self);
        Box::pin(async move {
            let link = Arc::new(link?);
            let (input, lines) = duplex(PIPE_BYTES);
            let (output, out) = duplex(PIPE_BYTES);
            let (over, ended) = watch::channel(None);
            let life = RemoteLife { link: link.clone(), ended };
            tokio::spawn(async move {
                let out = Arc::new(tokio::sync::Mutex::new(out));
                let how = tokio::select! {
                    () = link.clone().serve(lines, out) => "closed its input".to_owned(),
                    () = link.end.cancelled() => link.why(),
                };
                link.farewell().await;
                over.send_replace(Some(how));
            });
            Ok(Channel {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(tokio::io::empty()),
                pid: None,
                life: Box::new(life),
            })
        })
    }
}

struct RemoteLife {
    link: Arc<Link>,
    ended: watch::Receiver<Option<String>>,
}

impl Life for RemoteLife {
    fn ended(&self) -> Later<String> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let how = ended.wait_for(Option::is_some).await.ok().and_then(|how| how.clone());
            how.unwrap_or_else(|| "ended".into())
        })
    }

    fn end(&self) -> Later<()> {
        let (link, mut ended) = (self.link.clone(), self.ended.clone());
        Box::pin(async move {
            link.end.cancel();
            let _ = timeout(2 * END_PATIENCE, ended.wait_for(Option::is_some)).await;
        })
    }
}
