//! The gateway's doors without the rest of patterm.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use patterm_gateway::backend::{Backend, Channel, Later, Life};
use patterm_gateway::http::{self, Doors, Gatekeeper, Limits, Own, Principal, Scope, Talk};
use patterm_gateway::{Bounds, Gateway, Refusal, RefusalKind, Share, Told, Wanted};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

#[derive(Debug)]
struct Plain(String);

struct Alive(#[expect(dead_code)] Mutex<std::process::Child>);

impl Life for Alive {
    fn ended(&self) -> Later<String> {
        Box::pin(std::future::pending())
    }
    fn end(&self) -> Later<()> {
        Box::pin(std::future::ready(()))
    }
}

impl Backend for Plain {
    fn open(&self) -> Later<Result<Channel, Refusal>> {
        let server = self.0.clone();
        Box::pin(async move {
            let open = || -> anyhow::Result<Channel> {
                #[expect(clippy::disallowed_methods, reason = "benchmarks start what they measure")]
                let mut child = std::process::Command::new(server)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()?;
                let input = child.stdin.take().context("no input")?;
                let output = child.stdout.take().context("no output")?;
                let errors = child.stderr.take().context("no errors")?;
                Ok(Channel {
                    input: Box::new(pipe::Sender::from_owned_fd(input.into())?),
                    output: Box::new(pipe::Receiver::from_owned_fd(output.into())?),
                    errors: Box::new(pipe::Receiver::from_owned_fd(errors.into())?),
                    pid: None,
                    life: Box::new(Alive(Mutex::new(child))),
                })
            };
            open().map_err(|e| Refusal::new(RefusalKind::Unavailable, e.to_string()))
        })
    }
}

struct Tokens;

impl Gatekeeper for Tokens {
    fn admit(&self, token: &str) -> Option<Principal> {
        (token == "token").then(|| Principal { name: token.into(), scope: Scope::default() })
    }
}

struct Nothing;

impl Own for Nothing {
    fn talk(&self, _: &Principal) -> Result<(Arc<dyn Talk>, mpsc::Receiver<Told>), Refusal> {
        Err(Refusal::new(RefusalKind::Unknown, "nothing"))
    }
}

fn main() -> anyhow::Result<()> {
    let server = std::env::args().nth(1).context("no server")?;
    let two = std::env::var_os("STAND_IN_TWO").is_some();
    let runtime = match two {
        true => {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?
        }
        false => tokio::runtime::Builder::new_current_thread().enable_all().build()?,
    };
    runtime.block_on(async {
        let gateway = Gateway::default();
        let wanted = Wanted {
            backend: Arc::new(Plain(server)),
            fingerprint: "plain".into(),
            share: Share::All,
            bounds: Bounds::default(),
            roots: "[]".into(),
            tools: Default::default(),
        };
        gateway.configure(BTreeMap::from([("plain".to_owned(), wanted)]));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
        let doors = Doors {
            gateway,
            own: Arc::new(Nothing),
            gatekeeper: Arc::new(Tokens),
            audit: None,
            bots: None,
            limits: Limits::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
        };
        let doors = http::serve(listener, doors, tokio_util::sync::CancellationToken::new());
        tokio::spawn(doors).await?;
        Ok(())
    })
}
