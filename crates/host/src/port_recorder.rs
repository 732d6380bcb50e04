//! Records on which ports processes listen. The kernel announces no new sockets, so its tables are read: after a process
//! has started or ended, a few times with growing pauses, and after output. What neither prints nor changes costs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use patterm_events::{About, NewEvent};
use patterm_panes::Panes;
use patterm_panes::data_plane::ProcessRun;
use patterm_panes::tree::ListeningSockets;
use patterm_wire::events::{Actor, Fact};
use tokio::time::{Instant, sleep, sleep_until};

/// The pauses between the checks after a process has started or ended: servers listen within seconds, and print
/// something if it takes them longer.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// The shortest pause between a check and output that causes another one: programs print all the time.
const OUTPUT_PAUSE: Duration = Duration::from_secs(2);

/// The pause after a check, as a multiple of the time it took.
const REST: u32 = 20;

/// Records ports until the server ends.
#[derive(Debug)]
pub(crate) struct PortRecorder {
    panes: Arc<Panes>,
    /// What reads and records, while it does not.
    check: Option<Check>,
}

/// What a check remembers for the next one.
#[derive(Debug)]
struct Check {
    panes: Arc<Panes>,
    /// What was there, with the inits below which it was looked for.
    before: Option<(ListeningSockets, Vec<i32>)>,
    /// The recorded ports, by process, with its run.
    recorded: BTreeMap<String, (u64, BTreeSet<u16>)>,
}

impl PortRecorder {
    /// Continues after the events of earlier servers.
    pub(crate) fn new(panes: Arc<Panes>) -> Self {
        let processes = panes.events().known_state().processes.into_iter();
        let recorded = processes
            .filter(|(_, process)| !process.ports.is_empty())
            .map(|(id, process)| (id, (process.run, process.ports)))
            .collect();
        let check = Check { panes: panes.clone(), before: None, recorded };
        Self { panes, check: Some(check) }
    }

    pub(crate) async fn run(mut self) {
        let mut changes = self.panes.processes.changes();
        let mut pauses = PAUSES.iter();
        loop {
            changes.borrow_and_update();
            let runs = self.panes.runs();
            let mut printing: FuturesUnordered<_> =
                runs.iter().map(|(_, run)| printed(run)).collect();
            let began = Instant::now();
            if !self.check(runs.into_iter().map(|(_, run)| run).collect()).await {
                return;
            }
            let now = Instant::now();
            sleep((now - began) * REST).await;
            let next = pauses.next().map(|pause| now + *pause);
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    pauses = PAUSES.iter();
                    sleep_until(now + PAUSES[0]).await;
                }
                Some(()) = printing.next() => sleep_until(now + OUTPUT_PAUSE).await,
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }

    async fn check(&mut self, runs: Vec<Arc<ProcessRun>>) -> bool {
        let Some(mut check) = self.check.take() else { return false };
        let checked = tokio::task::spawn_blocking(move || {
            check.look(&runs);
            check
        });
        self.check = checked.await.ok();
        self.check.is_some()
    }
}

impl Check {
    fn look(&mut self, runs: &[Arc<ProcessRun>]) {
        let live: Vec<_> = runs.iter().filter_map(|run| Some((run, run.init()?))).collect();
        if live.is_empty() && self.recorded.is_empty() {
            return;
        }
        let sockets = ListeningSockets::read();
        let inits = live.iter().map(|(_, init)| *init).collect();
        let now = Some((sockets, inits));
        if self.before == now {
            return;
        }
        // What happened before this server began is found only now.
        let recovered = self.before.is_none();
        let Some((sockets, _)) = &now else { return };
        let mut found: BTreeMap<String, (u64, BTreeSet<u16>)> = BTreeMap::new();
        for (run, init) in live {
            found.insert(run.id.to_string(), (run.number.get(), sockets.of(init)));
        }
        let nothing = (0, BTreeSet::new());
        for (id, (run, ports)) in &self.recorded {
            let (now_run, now_ports) = found.get(id).unwrap_or(&nothing);
            let stays = |port: &&u16| now_run == run && now_ports.contains(*port);
            for port in ports.iter().filter(|port| !stays(port)) {
                self.record(id, *run, Fact::PortClosed { port: *port }, recovered);
            }
        }
        for (id, (run, ports)) in &found {
            let (before_run, before_ports) = self.recorded.get(id).unwrap_or(&nothing);
            let is_known = |port: &&u16| before_run == run && before_ports.contains(*port);
            for port in ports.iter().filter(|port| !is_known(port)) {
                self.record(id, *run, Fact::PortOpened { port: *port }, recovered);
            }
        }
        found.retain(|_, (_, ports)| !ports.is_empty());
        (self.recorded, self.before) = (found, now);
    }

    fn record(&self, id: &str, run: u64, fact: Fact, recovered: bool) {
        let mut about = About::process(id).run(run);
        let known = self.panes.runs().into_iter().map(|(_, run)| run);
        let mut known = known.filter(|known| known.id.as_str() == id && known.number.get() == run);
        about.offset = known.next().map(|run| run.watch().borrow().parsed.get());
        let event = NewEvent { fact, about, actor: Actor::System, recovered };
        if let Err(error) = self.panes.events().append(event) {
            tracing::error!(%error, "cannot record a port");
        }
    }
}

/// Waits until a run has printed something since this was called.
fn printed(run: &ProcessRun) -> impl Future<Output = ()> + use<> {
    let mut progress = run.watch();
    async move {
        if progress.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
