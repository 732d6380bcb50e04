//! Automatic restarts on paused time: a process that cannot be started is tried again with growing delays, and
//! given up at its limit.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::driver::Driver;
use super::file_status::Declared;
use patterm_panes::Panes;
use patterm_panes::keeper_client::KeeperClient;
use patterm_panes::process::RunNumber;
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::project::{PROJECT_FILE, Project};
use patterm_store::state::StateDir;

const FILE: &str = "[processes.bad]\ncommand = ['true']\nautostart = true\n\
    restart = { policy = 'on-failure', limit = 4, delay_seconds = 10, longest_delay_seconds = 60 }\n";

/// A declared process in a project whose keeper cannot be started, so that every start fails.
fn declared(folder: &tempfile::TempDir) -> Arc<Declared> {
    std::fs::write(folder.path().join(PROJECT_FILE), FILE).unwrap();
    let project = Project::of(folder.path()).unwrap();
    let state = StateDir::within(folder.path(), project.key());
    state.ensure().unwrap();
    let absent = folder.path().join("no such program");
    let keeper = KeeperClient::new(folder.path().join("keeper"), absent, project.root());
    let limits = Limits::default();
    let (panes, _) = Panes::load(&project, &state, &limits, keeper, Clock::system()).unwrap();
    let declared = Arc::new(Declared::new(Arc::new(panes), &project, &state, None));
    declared.read_project_file();
    let hash = declared.file_status().hash().unwrap().to_owned();
    declared.trust_project_file(&hash).unwrap();
    declared
}

#[tokio::test(start_paused = true)]
async fn restarts_wait_twice_as_long_each_time_until_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let declared = declared(&folder);
    let mut changes = declared.panes.processes.changes();
    let driving = tokio::spawn(Driver::new(declared.clone()).run());
    let (mut last, mut delays) = (Instant::now(), Vec::new());
    let mut runs = RunNumber::NONE;
    while delays.len() < 5 {
        changes.changed().await.unwrap();
        let process = declared.declared_entry("bad").unwrap();
        if process.runs > runs {
            runs = process.runs;
            delays.push(last.elapsed().as_secs());
            last = Instant::now();
        }
    }
    assert_eq!(delays, [0, 10, 20, 40, 60], "the fifth delay would be 80 s");
    // Long after the last start there was no other.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let process = declared.declared_entry("bad").unwrap();
    assert_eq!(process.runs, RunNumber::new(5));
    let status = declared.status(&process).unwrap();
    let problem = status.problem.unwrap_or_default();
    assert!(problem.contains("no longer restarted automatically"), "{problem}");
    assert_eq!(status.again_in, None);
    driving.abort();
}
