//! The keeper's protocol under delay and reordering: a simulated keeper answers late, twice, never, in another order
//! or with the wrong name, closes the connection or loses its panes. Whatever it does, panes are never confused, and
//! once it answers again it has the same panes as the server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixListener, UnixStream};

use arbtest::arbitrary::{self, Unstructured};
use patterm_keeper::log::Log;
use patterm_keeper::{Environment, Size};
use patterm_screen::Screen;
use patterm_store::clock::Clock;
use patterm_store::limits::Limits;
use patterm_store::project::Project;
use patterm_store::state::StateDir;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

use super::*;
use crate::data_plane::ProcessRun;
use crate::offset::Offset;
use crate::panes::Panes;
use crate::process::{ProcessId, RunNumber};

/// Long enough for an answer on an idle machine. On a busy one a correct answer may also be late; the invariants hold
/// anyway.
const SHORT: Duration = Duration::from_millis(40);

/// What the keeper does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Right,
    /// Carries it out and answers after the server's timeout.
    Late,
    /// Carries it out and does not answer.
    Never,
    /// Drops it.
    Ignored,
    /// Carries it out and closes the connection.
    HangsUp,
    /// The same, and loses all its panes.
    Loses,
    /// Starts the program and names another pane.
    OtherName,
    // The others only with request numbers: without them they could not be detected, and real keepers do not do
    // them.
    Twice,
    /// Repeats its answer to the last request before the right one.
    EarlierFirst,
    OtherNumber,
}

const MANNERS: [Manner; 10] = [
    Manner::Right,
    Manner::Late,
    Manner::Never,
    Manner::Ignored,
    Manner::HangsUp,
    Manner::Loses,
    Manner::OtherName,
    Manner::Twice,
    Manner::EarlierFirst,
    Manner::OtherNumber,
];

#[derive(Default)]
struct Model {
    /// Its answers repeat the numbers of requests, as keepers since 0.1.1 do.
    numbered: bool,
    manners: VecDeque<Manner>,
    /// Its panes, each with the id of its program.
    panes: BTreeMap<String, i32>,
    /// Every program that it ever started.
    started: BTreeMap<String, i32>,
    /// The inits' ends of the connections of panes.
    inits: Vec<OwnedFd>,
    earlier: Option<(Value, Option<i32>)>,
    over: bool,
}

impl Model {
    fn manner(&mut self) -> Manner {
        let manner = self.manners.pop_front().unwrap_or(Manner::Right);
        let needs_numbers =
            matches!(manner, Manner::Twice | Manner::EarlierFirst | Manner::OtherNumber);
        if needs_numbers && !self.numbered { Manner::Right } else { manner }
    }

    /// Carries a request out; returns the answers.
    fn carry_out(&mut self, request: &Request, id: Option<u64>) -> Vec<(Value, Option<i32>)> {
        match request {
            Request::Spawn(name) => {
                let program = i32::try_from(self.started.len()).unwrap() + 1;
                self.panes.insert(name.clone(), program);
                self.started.insert(name.clone(), program);
                vec![(pane(name, id), Some(program))]
            }
            Request::List => {
                let all = self.panes.iter().map(|(name, n)| (pane(name, id), Some(*n)));
                all.chain([(done(id), None)]).collect()
            }
            Request::Adopt(name) => {
                self.panes.insert(name.clone(), self.started[name]);
                vec![(done(id), None)]
            }
            Request::Forget(name) => {
                self.panes.remove(name);
                vec![(done(id), None)]
            }
        }
    }
}

enum Request {
    Spawn(String),
    Adopt(String),
    Forget(String),
    List,
}

fn pane(name: &str, id: Option<u64>) -> Value {
    match id {
        Some(id) => json!({"Pane": {"pane": name, "id": id}}),
        None => json!({"Pane": {"pane": name}}),
    }
}

fn done(id: Option<u64>) -> Value {
    id.map_or(json!("Done"), |id| json!({"Completed": {"id": id}}))
}

fn keep(listener: &UnixListener, model: &Mutex<Model>) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        if model.lock().unwrap().over {
            return;
        }
        while let Some((request, id)) = next(&mut stream) {
            if !answer(&mut stream, model, &request, id) {
                break;
            }
        }
    }
}

/// Reads a request; its descriptors are dropped.
fn next(stream: &mut UnixStream) -> Option<(Request, Option<u64>)> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_ne_bytes(length) as usize];
    stream.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap();
    if message == "List" {
        return Some((Request::List, None));
    }
    let (kind, content) = message.as_object().unwrap().iter().next().unwrap();
    let name = content["pane"].as_str().unwrap_or_default().to_owned();
    let request = match kind.as_str() {
        "Spawn" => Request::Spawn(name),
        "Adopt" => Request::Adopt(name),
        "Forget" => Request::Forget(name),
        "ListPanes" => Request::List,
        other => panic!("{other}"),
    };
    Some((request, content["id"].as_u64()))
}

/// Answers a request in its manner; `false` to close the connection.
#[expect(clippy::disallowed_methods, reason = "it is slow on purpose")]
fn answer(
    stream: &mut UnixStream,
    model: &Mutex<Model>,
    request: &Request,
    id: Option<u64>,
) -> bool {
    let shared = model;
    let mut model = shared.lock().unwrap();
    let hello = matches!(request, Request::Forget(name) if name.is_empty());
    let manner = if hello { Manner::Right } else { model.manner() };
    let id = id.filter(|_| model.numbered);
    if manner == Manner::Ignored {
        return true;
    }
    let mut answers = model.carry_out(request, id);
    let earlier = model.earlier.take();
    model.earlier = answers.first().cloned();
    match manner {
        Manner::Never => return true,
        Manner::HangsUp => return false,
        Manner::Loses => {
            model.panes.clear();
            return false;
        }
        Manner::Late => {
            drop(model);
            std::thread::sleep(SHORT * 2);
            model = shared.lock().unwrap();
        }
        Manner::OtherName => {
            if let Request::Spawn(_) = request {
                answers[0].0 = pane("p0.1", id);
            }
        }
        Manner::OtherNumber => {
            answers[0].0 = match request {
                Request::Spawn(name) => pane(name, id.map(|id| id + 1)),
                _ => done(id.map(|id| id + 1)),
            };
        }
        Manner::Twice => answers = [answers.clone(), answers].concat(),
        Manner::EarlierFirst => answers = earlier.into_iter().chain(answers).collect(),
        Manner::Right | Manner::Ignored => {}
    }
    answers.iter().all(|(message, program)| send(stream, message, *program, &mut model))
}

/// Sends a message, with the descriptors of a pane whose program has this id.
fn send(stream: &UnixStream, message: &Value, program: Option<i32>, model: &mut Model) -> bool {
    let body = message.to_string();
    let length = u32::try_from(body.len()).unwrap().to_ne_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = program.map(|program| {
        let master = std::fs::File::open("/dev/null").unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut status = tempfile::tempfile().unwrap();
        // No process has the highest number, so none is ever signalled.
        let record = [i32::MAX, program, 1, 0, 0, 0].map(i32::to_ne_bytes).concat();
        status.write_all(&record).unwrap();
        model.inits.push(theirs.into());
        [OwnedFd::from(master), ours.into(), status.into()]
    });
    let borrowed = descriptors.as_ref().map(|all| all.each_ref().map(|one| one.as_fd()));
    if let Some(descriptors) = &borrowed {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let sent = sendmsg(stream, &[IoSlice::new(&length)], &mut control, SendFlags::NOSIGNAL);
    let mut stream = stream;
    sent.is_ok() && stream.write_all(body.as_bytes()).is_ok()
}

fn program() -> Program {
    let size = Size { rows: 24, columns: 80 };
    Program { argv: vec!["x".into()], env: Environment::default(), working_dir: "/".into(), size }
}

/// Sends random requests to the simulated keeper; returns the panes that the server has at the end.
async fn exercise(
    u: &mut Unstructured<'_>,
    client: &KeeperClient,
    model: &Mutex<Model>,
) -> arbitrary::Result<BTreeMap<String, Arc<Pane>>> {
    let mut held: BTreeMap<String, Arc<Pane>> = BTreeMap::new();
    for turn in 1..=u.int_in_range(1..=8)? {
        let forgets = !held.is_empty() && u.ratio(1, 3)?;
        let manner = *u.choose(&MANNERS)?;
        model.lock().unwrap().manners.push_back(manner);
        if forgets {
            let name: String = u.choose_iter(held.keys())?.clone();
            if client.forget(name.clone()).await.is_ok() {
                let kept = model.lock().unwrap().panes.contains_key(&name);
                assert!(!kept, "{name} was confirmed as let go ({manner:?})");
            }
            held.remove(&name);
        } else {
            let name = format!("p{turn}.1");
            if let Ok(pane) = client.spawn(name.clone(), program(), None).await {
                let program = pane.status().unwrap().unwrap().program;
                let own = model.lock().unwrap().started.get(&name).copied();
                assert_eq!(Some(program), own, "{name} is another's pane ({manner:?})");
                held.insert(name, pane);
            }
        }
    }
    Ok(held)
}

/// Longer than the server and the keeper take to agree, on any machine.
const CEILING: Duration = Duration::from_secs(60);

/// Waits until the server and the keeper agree again, as the host does.
async fn settle(client: &KeeperClient) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < CEILING, "they do not agree");
        let connected =
            client.0.keeper.lock().await.as_ref().is_some_and(KeeperConnection::is_connected);
        // An answered request shows that no other is in progress.
        if connected && client.forget("p0.0".into()).await.is_ok() {
            return;
        }
        client.restore().await;
    }
}

#[test]
fn panes_are_not_confused_by_late_double_missing_or_reordered_answers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    arbtest::arbtest(|u| {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("keeper");
        let listener = UnixListener::bind(&socket).unwrap();
        let model = Arc::new(Mutex::new(Model { numbered: u.arbitrary()?, ..Model::default() }));
        let simulated = {
            let model = model.clone();
            std::thread::spawn(move || keep(&listener, &model))
        };
        let absent = "/a keeper that lives is never replaced".into();
        let client = KeeperClient::with_patience(socket.clone(), absent, folder.path(), SHORT);
        let begun = Instant::now();
        while let Err(error) = client.recover() {
            assert!(begun.elapsed() < CEILING, "{error}");
        }
        let held = runtime.block_on(exercise(u, &client, &model));
        model.lock().unwrap().manners.clear();
        runtime.block_on(settle(&client));
        if let Ok(held) = held {
            let kept: BTreeSet<String> = model.lock().unwrap().panes.keys().cloned().collect();
            let held: BTreeSet<String> = held.into_keys().collect();
            assert_eq!(kept, held, "what the keeper has, and what the server has");
        }
        runtime.block_on(async { *client.0.keeper.lock().await = None });
        model.lock().unwrap().over = true;
        drop(UnixStream::connect(&socket));
        simulated.join().unwrap();
        Ok(())
    })
    .budget_ms(5_000);
}

/// For example if there was no memory or descriptor to start another.
#[test]
fn a_keeper_that_could_not_be_replaced_is_tried_again() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("keeper");
    let model = Arc::new(Mutex::new(Model { numbered: true, ..Model::default() }));
    let listen = || {
        let (listener, model) = (UnixListener::bind(&socket).unwrap(), model.clone());
        std::thread::spawn(move || keep(&listener, &model))
    };
    let end = |simulated: std::thread::JoinHandle<()>| {
        model.lock().unwrap().over = true;
        drop(UnixStream::connect(&socket));
        simulated.join().unwrap();
        model.lock().unwrap().over = false;
        std::fs::remove_file(&socket).unwrap();
    };
    let first = listen();
    let client = KeeperClient::new(socket.clone(), "/no program".into(), folder.path());
    client.recover().unwrap();
    let pane = runtime.block_on(client.spawn("p1.1".into(), program(), None)).unwrap();
    // It is gone, and no other can be started.
    runtime.block_on(async { client.disconnect(&mut client.0.keeper.clone().lock_owned().await) });
    end(first);
    model.lock().unwrap().panes.clear();
    assert!(!runtime.block_on(client.restore()), "there is a pane and no keeper");
    let second = listen();
    assert!(runtime.block_on(client.restore()));
    assert!(model.lock().unwrap().panes.contains_key("p1.1"), "it has the pane");
    drop(pane);
    runtime.block_on(async { *client.0.keeper.lock().await = None });
    end(second);
    // No keeper is needed without panes.
    assert!(runtime.block_on(client.restore()));
}

/// A request that waits too long for its turn fails for its caller, but is still sent later.
#[test]
fn a_pane_is_released_though_the_turn_of_the_request_came_late() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("keeper");
    let listener = UnixListener::bind(&socket).unwrap();
    let model = Arc::new(Mutex::new(Model { numbered: true, ..Model::default() }));
    let simulated = {
        let model = model.clone();
        std::thread::spawn(move || keep(&listener, &model))
    };
    // Long enough for an answer on a busy machine.
    let patience = Duration::from_secs(2);
    let absent = "/no program".into();
    let client = KeeperClient::with_patience(socket.clone(), absent, folder.path(), patience);
    client.recover().unwrap();
    let _pane = runtime.block_on(client.spawn("p1.1".into(), program(), None)).unwrap();
    runtime.block_on(async {
        // Another request has its turn and does not end.
        let turn = client.0.keeper.clone().lock_owned().await;
        client.forget("p1.1".into()).await.unwrap_err();
        drop(turn);
        // The lock is fair.
        *client.0.keeper.lock().await = None;
    });
    assert!(model.lock().unwrap().panes.is_empty(), "it was told when its turn came");
    model.lock().unwrap().over = true;
    drop(UnixStream::connect(&socket));
    simulated.join().unwrap();
}

/// A caller is cancelled after the answer was sent, and before it took it.
#[test]
fn a_pane_that_its_caller_no_longer_takes_is_released() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("keeper");
    let listener = UnixListener::bind(&socket).unwrap();
    let model = Arc::new(Mutex::new(Model { numbered: true, ..Model::default() }));
    let simulated = {
        let model = model.clone();
        std::thread::spawn(move || keep(&listener, &model))
    };
    let client = KeeperClient::new(socket.clone(), "/no program".into(), folder.path());
    client.recover().unwrap();
    runtime.block_on(async {
        let mut asking = Box::pin(client.spawn("p1.1".into(), program(), None));
        tokio::select! {
            biased;
            _ = &mut asking => panic!("the keeper has not been asked yet"),
            () = std::future::ready(()) => {}
        }
        // The request has its turn, and the answer is on its way when that ends.
        drop(client.0.keeper.lock().await);
        assert!(model.lock().unwrap().panes.contains_key("p1.1"), "the keeper has started it");
        drop(asking);
        // The task that has it released asks for its turn first.
        tokio::task::yield_now().await;
        *client.0.keeper.lock().await = None;
    });
    assert!(model.lock().unwrap().panes.is_empty(), "nobody would end it");
    assert!(client.panes().is_empty());
    model.lock().unwrap().over = true;
    drop(UnixStream::connect(&socket));
    simulated.join().unwrap();
}

/// The end of a program may be noticed by its init before the server notices that.
#[test]
fn a_program_that_has_just_ended_needs_no_command_to_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("keeper");
    let listener = UnixListener::bind(&socket).unwrap();
    let model = Arc::new(Mutex::new(Model { numbered: true, ..Model::default() }));
    let simulated = {
        let model = model.clone();
        std::thread::spawn(move || keep(&listener, &model))
    };
    let client = KeeperClient::new(socket.clone(), "/no program".into(), folder.path());
    client.recover().unwrap();
    let pane = runtime.block_on(client.spawn("p1.1".into(), program(), None)).unwrap();
    let project = Project::of(folder.path()).unwrap();
    let state = StateDir::within(folder.path(), project.key());
    state.ensure().unwrap();
    let (limits, clock) = (Limits::default(), Clock::system());
    let (panes, _events) = Panes::load(&project, &state, &limits, client.clone(), clock).unwrap();
    let log = Log::open(&folder.path().join("log"), 1 << 20).unwrap();
    let screen = Screen::new(patterm_screen::Size::DEFAULT);
    let (id, number) = (ProcessId::new(1), RunNumber::FIRST);
    let run = ProcessRun::new(id, number, Some(pane), log.reader(), screen, Offset::START);
    let run = Arc::new(run);
    panes.kill_after(&run, SHORT).unwrap();
    model.lock().unwrap().inits.clear();
    panes.kill_after(&run, SHORT).unwrap();
    runtime.block_on(async { *client.0.keeper.lock().await = None });
    model.lock().unwrap().over = true;
    drop(UnixStream::connect(&socket));
    simulated.join().unwrap();
}
