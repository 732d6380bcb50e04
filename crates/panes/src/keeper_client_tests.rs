//! The keeper's protocol under delay and reordering: a simulated keeper that answers late, twice, never,
//! in another order, with the wrong name, closes the connection or loses its panes. Whatever it does, no
//! pane is taken for another, and once it answers again it has the panes that the server has.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixListener, UnixStream};

use arbtest::arbitrary::{self, Unstructured};
use patterm_keeper::Size;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

use super::*;

/// Long enough for an answer on a quiet machine; on a busy one a right answer may come too late as
/// well, which changes nothing in what must hold.
const SHORT: Duration = Duration::from_millis(40);

/// What the keeper does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Manner {
    Right,
    /// Carries it out and says so after the server's patience is over.
    Late,
    /// Carries it out and says nothing.
    Never,
    /// Does not see it.
    Ignored,
    /// Carries it out and closes the connection.
    HangsUp,
    /// The same, and has no panes any more.
    Loses,
    /// Starts the program and names another pane.
    OtherName,
    // The rest only with numbers: without them nobody could tell, and a real keeper does not do it.
    Twice,
    /// Says again what it said to the last request, and then the answer.
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
    /// It repeats numbers, as keepers since 0.1.1 do.
    numbered: bool,
    manners: VecDeque<Manner>,
    /// What it keeps: the program's id tells the panes apart.
    panes: BTreeMap<String, i32>,
    /// Every program that it ever started.
    started: BTreeMap<String, i32>,
    /// The inits' ends of the panes.
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

    /// Carries a request out; the answers to it.
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
    Program { argv: vec!["x".into()], env: BTreeMap::new(), working_dir: "/".into(), size }
}

/// A server's dealings with the simulated keeper: what it holds at the end.
async fn deal(
    u: &mut Unstructured<'_>,
    keeping: &KeeperClient,
    model: &Mutex<Model>,
) -> arbitrary::Result<BTreeMap<String, Arc<Pane>>> {
    let mut held: BTreeMap<String, Arc<Pane>> = BTreeMap::new();
    for turn in 1..=u.int_in_range(1..=8)? {
        let forgets = !held.is_empty() && u.ratio(1, 3)?;
        let manner = *u.choose(&MANNERS)?;
        model.lock().unwrap().manners.push_back(manner);
        if forgets {
            let name: String = u.choose_iter(held.keys())?.clone();
            if keeping.forget(name.clone()).await.is_ok() {
                let kept = model.lock().unwrap().panes.contains_key(&name);
                assert!(!kept, "{name} was confirmed as let go ({manner:?})");
            }
            held.remove(&name);
        } else {
            let name = format!("p{turn}.1");
            if let Ok(pane) = keeping.spawn(name.clone(), program(), None).await {
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
async fn settle(keeping: &KeeperClient) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < CEILING, "they do not agree");
        let connected =
            keeping.0.keeper.lock().await.as_ref().is_some_and(KeeperConnection::is_connected);
        // An answered request shows that nothing is on its way any more.
        if connected && keeping.forget("p0.0".into()).await.is_ok() {
            return;
        }
        keeping.mend().await;
    }
}

#[test]
fn a_keeper_that_answers_late_twice_never_or_in_another_order_confuses_no_panes() {
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
        let keeping = KeeperClient::with_patience(socket.clone(), absent, folder.path(), SHORT);
        let begun = Instant::now();
        while let Err(error) = keeping.recover() {
            assert!(begun.elapsed() < CEILING, "{error}");
        }
        let held = runtime.block_on(deal(u, &keeping, &model));
        model.lock().unwrap().manners.clear();
        runtime.block_on(settle(&keeping));
        if let Ok(held) = held {
            let kept: BTreeSet<String> = model.lock().unwrap().panes.keys().cloned().collect();
            let held: BTreeSet<String> = held.into_keys().collect();
            assert_eq!(kept, held, "what the keeper has, and what the server has");
        }
        runtime.block_on(async { *keeping.0.keeper.lock().await = None });
        model.lock().unwrap().over = true;
        drop(UnixStream::connect(&socket));
        simulated.join().unwrap();
        Ok(())
    })
    .budget_ms(5_000);
}

/// As when there was no memory or no descriptor to start another with.
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
    let keeping = KeeperClient::new(socket.clone(), "/no program".into(), folder.path());
    keeping.recover().unwrap();
    let pane = runtime.block_on(keeping.spawn("p1.1".into(), program(), None)).unwrap();
    // It is gone, and no other can be started.
    runtime.block_on(async { keeping.let_go(&mut keeping.0.keeper.clone().lock_owned().await) });
    end(first);
    model.lock().unwrap().panes.clear();
    assert!(!runtime.block_on(keeping.mend()), "there is a pane and no keeper");
    let second = listen();
    assert!(runtime.block_on(keeping.mend()));
    assert!(model.lock().unwrap().panes.contains_key("p1.1"), "it has the pane");
    drop(pane);
    runtime.block_on(async { *keeping.0.keeper.lock().await = None });
    end(second);
    // Without panes no keeper is needed.
    assert!(runtime.block_on(keeping.mend()));
}

/// A request that waits for its turn for too long has failed for its caller, and is not forgotten.
#[test]
fn a_pane_is_let_go_of_though_the_turn_for_it_came_late() {
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
    let keeping = KeeperClient::with_patience(socket.clone(), absent, folder.path(), patience);
    keeping.recover().unwrap();
    let _pane = runtime.block_on(keeping.spawn("p1.1".into(), program(), None)).unwrap();
    runtime.block_on(async {
        // Another request has its turn and does not come to an end.
        let turn = keeping.0.keeper.clone().lock_owned().await;
        keeping.forget("p1.1".into()).await.unwrap_err();
        drop(turn);
        // The lock is handed over in the order in which it was asked for.
        *keeping.0.keeper.lock().await = None;
    });
    assert!(model.lock().unwrap().panes.is_empty(), "it was told when its turn came");
    model.lock().unwrap().over = true;
    drop(UnixStream::connect(&socket));
    simulated.join().unwrap();
}
