//! A full disk: terminals stay alive, everyone is told, actions that cannot be recorded are
//! refused, and space can be freed.

use std::path::PathBuf;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::faults::start;
use crate::agents::fake;
use crate::support::tool_client::{ToolClient, id_of, until};
use crate::support::{Place, Running};

/// A small disk, removed on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn at(path: PathBuf, bytes: usize) -> Self {
        let options = std::ffi::CString::new(format!("size={bytes},mode=0700")).unwrap();
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), &*options).unwrap();
        Self(path)
    }

    /// Fills the disk until the file is removed.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        let zeros = [0; 4096];
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Processes with files there are gone, or about to be.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Prints `seq 1 N` for every number that is typed into it.
const COUNTER: &str = "stty -echo; echo up; while read n; do seq 1 $n; echo end $n; done";

fn counted(most: usize) -> String {
    (1..=most).map(|n| format!("{n}\r\n")).chain([format!("end {most}\r\n")]).collect()
}

/// The output of a process that is still in its log: where it begins, and its text.
#[track_caller]
fn kept(tools: &mut ToolClient, id: &str) -> (u64, String) {
    let (mut since, mut first, mut text) = (0, None, String::new());
    loop {
        let arguments = json!({"process_id": id, "since_offset": since, "max_bytes": 1 << 20});
        let answer = tools.ok("get_process_raw_output", arguments);
        let (offset, next) = (answer["offset"].as_u64(), answer["next_offset"].as_u64().unwrap());
        // The loss is reported once, at the beginning.
        assert_eq!(answer["dropped"].as_u64().unwrap_or(0), offset.unwrap() - since, "{since}");
        assert!(first.is_none() || offset == Some(since));
        first = first.or(offset);
        text.push_str(answer["text"].as_str().unwrap());
        if next == offset.unwrap() {
            return (first.unwrap(), text);
        }
        since = next;
    }
}

fn problem(tools: &mut ToolClient, id: &str) -> Option<String> {
    tools.status(id)["output_problem"].as_str().map(str::to_owned)
}

fn kill(pid: u32) {
    let process = Running::of(pid);
    process.signal(Signal::KILL);
    process.wait();
}

/// The findings of doctor: the check and its text.
fn broken(place: &Place) -> Vec<(String, String)> {
    let output = place.patterm(&["doctor", "--json"]).output().unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let broken = findings.iter().filter(|finding| finding["health"] == "broken");
    let words = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    broken.map(|finding| (words(finding, "check"), words(finding, "says"))).collect()
}

/// A pane whose log is a single file has its newest output, and one with several loses its oldest file.
#[test]
fn terminals_stay_alive_on_a_full_disk_and_everyone_is_told() {
    let place = Place::new();
    let disk = SmallDisk::at(place.path("state"), 8 << 20);
    let entry = start(&mut place.patterm(&["serve", "--json"]));
    let mut tools = ToolClient::at(&entry.socket);
    let [single, several] = [COUNTER, COUNTER].map(|script| tools.sh(script));
    let shell = tools.run(&["sh"]);
    // From here on nothing is echoed.
    tools.wait(&single, "up");
    tools.wait(&several, "up");
    tools.line(&several, "100000");
    tools.wait(&several, "^end 100000$");
    assert_eq!(broken(&place), []);
    let ballast = disk.fill();
    tools.line(&single, "100001");
    tools.wait(&single, "^end 100001$");
    tools.line(&several, "300000");
    tools.wait(&several, "^end 300000$");
    // The rest is contiguous, and no offset is missing.
    let all = format!("up\r\n{}", counted(100_001));
    let (from, text) = kept(&mut tools, &single);
    assert!(from > 0 && all.ends_with(&text), "from {from}");
    assert_eq!(from + text.len() as u64, all.len() as u64);
    let all = format!("up\r\n{}{}", counted(100_000), counted(300_000));
    let (from, text) = kept(&mut tools, &several);
    assert!(from > 0 && all.ends_with(&text), "from {from}");
    assert_eq!(from + text.len() as u64, all.len() as u64);
    assert!(text.len() > 300_000, "only its oldest file went: {}", text.len());
    // It is reported, in red if colours are available.
    for id in [&single, &several] {
        let problem_text = problem(&mut tools, id).unwrap();
        assert!(problem_text.contains("the disk is full"), "{problem_text}");
    }
    assert_eq!(problem(&mut tools, &shell), None, "it has lost nothing");
    assert!(place.run(&["ps"]).contains(&format!("{single}: the disk is full")));
    let ps = format!("{} ps; echo shown", place.binary().display());
    tools.line(&shell, &ps);
    tools.wait(&shell, "^shown$");
    let red = format!("\x1b[31m{single}: the disk is full");
    assert!(kept(&mut tools, &shell).1.contains(&red), "{}", kept(&mut tools, &shell).1);
    let found = broken(&place);
    for check in ["state folder", "output"] {
        assert!(found.iter().any(|(what, _)| what == check), "{check}: {found:?}");
    }
    // It ends as soon as there is room, even if nothing is printed.
    std::fs::remove_file(ballast).unwrap();
    for id in [&single, &several] {
        until("there is room", || problem(&mut tools, id).is_none().then_some(()));
    }
    assert_eq!(broken(&place), []);
    tools.line(&single, "100002");
    tools.wait(&single, "^end 100002$");
    let before = kept(&mut tools, &single);
    kill(entry.pid);
    let entry = start(&mut place.patterm(&["serve", "--json"]));
    assert_eq!(
        kept(&mut ToolClient::at(&entry.socket), &single),
        before,
        "so the next server finds it"
    );
    place.run(&["kill"]);
}

#[test]
fn on_a_full_disk_new_work_is_refused_and_what_happened_is_recorded() {
    let mut place = Place::new();
    fake::settle(&mut place, "");
    let disk = SmallDisk::at(place.path("state"), 8 << 20);
    let entry = start(&mut place.patterm(&["serve", "--json"]));
    let mut tools = ToolClient::at(&entry.socket);
    let agent = id_of(&tools.ok("spawn_agent", json!({"agent": "fake"})));
    let [stays, goes, ends] =
        ["cat", "cat", "stty -echo; echo up; read x; exit 4"].map(|script| tools.sh(script));
    tools.wait(&ends, "up");
    let timer = |body: &str| json!({"seconds": 86_400, "body": body, "owner_process_id": stays});
    let cancelled = tools.ok("timer_set", timer("first"))["timer_id"].clone();
    tools.ok("scratchpad_write", json!({"name": "plan", "content": "unchanged"}));
    let unwanted = json!({"name": "unwanted", "content": "to be deleted"});
    let unwanted = tools.ok("scratchpad_write", unwanted)["revision"].clone();
    let ballast = disk.fill();
    let long = "x".repeat(8_000);
    for (tool, arguments) in [
        ("spawn_process", json!({"argv": ["cat"]})),
        ("timer_set", timer(&long)),
        ("scratchpad_append", json!({"name": "plan", "content": long})),
        ("scratchpad_write", json!({"name": "other", "content": long})),
        ("send_message", json!({"target_process_id": agent, "message": long})),
        ("spawn_agent", json!({"agent": "fake"})),
    ] {
        let message = tools.refused("unavailable", tool, arguments);
        assert!(message.contains("No space left"), "{tool}: {message}");
    }
    assert_eq!(tools.ids(), [&*agent, &*stays, &*goes, &*ends], "no entry is left behind");
    // Events and removals are recorded in the reserve.
    for n in 0..20 {
        tools.ok("rename_process", json!({"process_id": stays, "name": format!("name {n}")}));
    }
    tools.line(&ends, "");
    let status = tools.ended(&ends);
    assert_eq!((&status["status"], &status["exit"]), (&json!("exited"), &json!({"code": 4})));
    tools.ok("timer_cancel", json!({"timer_id": cancelled}));
    let unwanted = json!({"name": "unwanted", "expected_revision": unwanted});
    tools.ok("scratchpad_delete", unwanted);
    assert_eq!(tools.close(&goes), [&*goes]);
    // The space of the closed process is filled as well.
    let more = disk.0.join("more");
    let mut file = std::fs::File::create(&more).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    tools.ok("rename_process", json!({"process_id": stays, "name": "still there"}));
    kill(entry.pid);
    let entry = start(&mut place.patterm(&["serve", "--json"]));
    let mut tools = ToolClient::at(&entry.socket);
    assert_eq!(tools.ids(), [&*agent, &*stays, &*ends]);
    assert_eq!(tools.status(&ends)["exit"], json!({"code": 4}));
    assert_eq!(tools.status(&stays)["name"], "still there");
    assert_eq!(tools.ok("timer_list", json!({}))["timers"], json!([]));
    assert_eq!(tools.ok("scratchpad_read", json!({"name": "plan"}))["content"], "unchanged");
    tools.refused("not_found", "scratchpad_read", json!({"name": "unwanted"}));
    tools.line(&stays, "goes on");
    tools.wait(&stays, "goes on");
    // With free space, everything works again.
    std::fs::remove_file(ballast).unwrap();
    tools.ok("timer_set", timer("second"));
    tools.ok("scratchpad_write", json!({"name": "other", "content": long}));
    tools.run(&["cat"]);
    place.run(&["kill"]);
}

#[test]
fn a_full_disk_can_be_emptied_by_closing() {
    let place = Place::new();
    let disk = SmallDisk::at(place.path("state"), 4 << 20);
    let entry = start(&mut place.patterm(&["serve", "--json"]));
    let mut tools = ToolClient::at(&entry.socket);
    let id = tools.sh("yes; exec cat");
    let other = tools.sh("echo up; exec cat");
    tools.wait(&other, "up");
    until("the disk is full", || problem(&mut tools, &id));
    let _ballast = disk.fill();
    assert_eq!(tools.close(&id), [id]);
    tools.line(&other, "goes on");
    tools.wait(&other, "goes on");
    tools.run(&["cat"]);
    place.run(&["kill"]);
}
