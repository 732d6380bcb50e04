//! Files that another user planted where patterm looks for the user's own: they are ignored.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use patterm_host::Project;
use patterm_wire::requests::ServerEntry;
use serde_json::{Value, json};

use super::{Traces, mode};
use crate::support::{Place, Running, User};

/// A verb that hangs is killed after this time. It takes milliseconds; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place of one user, and another user who created that user's folder in `/tmp` first.
struct Attacked {
    place: Place,
    attacker: User,
}

impl Attacked {
    fn new() -> Self {
        let attacked = Self { place: Place::of_another_user(), attacker: User::reserve() };
        let folder = attacked.folder();
        attacked.attacker.does(|| {
            std::fs::create_dir(&folder).unwrap();
            open_to_all(&folder);
        });
        attacked
    }

    /// The victim's folder in `/tmp`, created by the attacker.
    fn folder(&self) -> PathBuf {
        self.place.user().unwrap().folder_in_tmp()
    }

    /// Writes an entry into it, readable for all.
    fn plant(&self, name: &str, entry: &Value) {
        let path = self.folder().join(name);
        self.attacker.does(|| std::fs::write(path, entry.to_string()).unwrap());
    }

    /// Runs a verb in a project of the victim; it must exit by itself.
    fn run(&self, project: &Path, arguments: &[&str]) -> Output {
        ends(self.place.patterm(arguments).current_dir(project))
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
}

/// Runs a command that must succeed in time.
fn ends(command: &mut Command) -> Output {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = Running::of(child.id());
    let deadline = Instant::now() + PATIENCE;
    if !running.wait_until(deadline) {
        child.kill().unwrap();
        panic!("{command:?} hangs");
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Even with XDG_RUNTIME_DIR set, 0.1.0 looked there.
#[test]
fn a_registry_that_another_user_created_is_ignored() {
    let attacked = Attacked::new();
    let place = &attacked.place;
    let (mine, other) = (place.path("project"), place.folder("other"));
    let of_other: ServerEntry =
        serde_json::from_str(&text(&attacked.run(&other, &["serve", "--json"]))).unwrap();

    // Users of this project are to be directed to the attacker's server.
    let key = Project::of(&mine).unwrap().key().to_owned();
    let mut entry = serde_json::to_value(&of_other).unwrap();
    entry["key"] = json!(key);
    attacked.plant(&format!("{key}.json"), &entry);
    // The output reveals too much, and a lock is created where the key points.
    entry["patterm"] = json!("\u{1b}]0;owned\u{7}");
    entry["project"] = json!("/planted\u{1b}[2J");
    let made = place.path("state/made");
    entry["key"] = json!(format!("../..{}", made.display()));
    attacked.plant("planted.json", &entry);

    attacked.run(&mine, &["run", "--name", "mine", "--", "sleep", "1000"]);
    assert!(!text(&attacked.run(&other, &["ps"])).contains("mine"), "it runs in the other project");
    assert!(text(&attacked.run(&mine, &["ps"])).contains("mine"));
    let listed = text(&attacked.run(&mine, &["ls"]));
    assert!(!listed.contains("planted") && !listed.contains('\u{1b}'), "{listed:?}");
    assert!(listed.contains(&*other.to_string_lossy()), "{listed:?}");
    for ending in ["starting", "lock"] {
        assert!(!made.with_extension(ending).exists(), "a file was made through the key");
    }
    let server = Running::of(of_other.pid);
    attacked.run(&mine, &["kill"]);
    attacked.run(&mine, &["kill"]);
    assert!(!server.is_gone(), "the other project's server was ended");
}

#[test]
fn a_pipe_a_huge_file_or_a_link_in_a_registry_hangs_no_verb() {
    let attacked = Attacked::new();
    let place = &attacked.place;
    let key = place.project().key().to_owned();
    let planted = attacked.folder();
    attacked.attacker.does(|| {
        let pipe = |name: String| {
            let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o666));
            rustix::fs::mknodat(rustix::fs::CWD, planted.join(name), kind, mode, 0).unwrap();
        };
        pipe(format!("{key}.json"));
        pipe("0123456789abcdef.json".into());
        let huge = std::fs::File::create(planted.join("1123456789abcdef.json")).unwrap();
        huge.set_len(3 << 30).unwrap();
        symlink("/dev/zero", planted.join("2123456789abcdef.json")).unwrap();
    });
    let project = place.path("project");
    attacked.run(&project, &["ls"]);
    attacked.run(&project, &["ps"]);
    attacked.run(&project, &["kill", "--all"]);
}

/// The same in the user's own folder: files that one of their programs left there.
#[test]
fn nothing_in_our_own_registry_hangs_a_verb_or_leads_to_another_project() {
    let place = Place::new();
    let server = place.serve();
    let folder = place.path("run/patterm");
    let pipe = folder.join("0123456789abcdef.json");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, pipe, kind, mode, 0).unwrap();
    symlink("/dev/zero", folder.join("1123456789abcdef.json")).unwrap();
    let other = place.folder("other");
    let key = Project::of(&other).unwrap().key().to_owned();
    let text_of = |entry: &ServerEntry| serde_json::to_string(entry).unwrap();
    std::fs::write(folder.join(format!("{key}.json")), text_of(&server.entry)).unwrap();
    let listed: Vec<ServerEntry> =
        serde_json::from_slice(&ends(&mut place.patterm(&["ls", "--json"])).stdout).unwrap();
    assert_eq!(listed, std::slice::from_ref(&server.entry));
    let error = ends(place.patterm(&["kill"]).current_dir(&other));
    assert_eq!(text(&error), "no server is running for this project\n");
    assert!(!server.process().is_gone());
}

/// Starts a server without a runtime folder of the session; `plant` gets the path that its socket
/// will have.
fn serve_in_tmp(place: &Place, plant: impl FnOnce(&Path)) -> (std::process::Child, PathBuf) {
    let mut command = place.command(Path::new("sh"));
    command.args(["-c", "read go; exec \"$0\" serve --foreground"]).arg(place.binary());
    command.env_remove("XDG_RUNTIME_DIR").stdin(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let usual = PathBuf::from(format!("/tmp/patterm-{}.sock", server.id()));
    plant(&usual);
    drop(server.stdin.take());
    (server, usual)
}

/// Whether a verb finds the server with this process id.
fn is_found(place: &Place, pid: u32) -> bool {
    let listed = ends(place.patterm(&["ls", "--json"]).env_remove("XDG_RUNTIME_DIR")).stdout;
    let listed: Vec<ServerEntry> = serde_json::from_slice(&listed).unwrap();
    listed.iter().any(|entry| entry.pid == pid)
}

#[test]
fn a_socket_name_that_another_user_took_is_left_alone_and_ours_is_in_our_folder() {
    let place = Place::of_another_user();
    let attacker = User::reserve();
    let precious = place.path("home/precious");
    std::fs::write(&precious, "").unwrap();
    place.give_to_user(&precious);
    std::fs::set_permissions(&precious, PermissionsExt::from_mode(0o644)).unwrap();
    let (mut server, usual) = serve_in_tmp(&place, |usual| {
        attacker.does(|| symlink(&precious, usual).unwrap());
    });
    let deadline = Instant::now() + PATIENCE;
    while !is_found(&place, server.id()) {
        assert_eq!(server.try_wait().unwrap(), None, "the server must keep running");
        assert!(Instant::now() < deadline, "it is not found");
    }
    let folder = place.user().unwrap().folder_in_tmp();
    let entry = Traces::within(&place, &folder).entry();
    assert_eq!(entry.socket, folder.join(format!("{}.sock", server.id())));
    assert_eq!((mode(&entry.socket), mode(&precious)), (0o600, 0o644));
    let there = std::fs::symlink_metadata(&usual).unwrap();
    assert_eq!((there.is_symlink(), there.uid()), (true, attacker.uid));
    ends(place.patterm(&["run", "--", "true"]).env_remove("XDG_RUNTIME_DIR"));
    ends(place.patterm(&["kill"]).env_remove("XDG_RUNTIME_DIR"));
    server.wait().unwrap();
    assert!(!entry.socket.exists());
    std::fs::remove_file(usual).unwrap();
}

#[test]
fn a_server_is_found_although_another_user_listens_at_its_old_address() {
    let place = Place::of_another_user();
    let attacker = User::reserve();
    let run = |arguments: &[&str]| ends(place.patterm(arguments).env_remove("XDG_RUNTIME_DIR"));
    let old: ServerEntry = serde_json::from_slice(&run(&["serve", "--json"]).stdout).unwrap();
    let server = Running::of(old.pid);
    server.signal(rustix::process::Signal::KILL);
    server.wait();
    std::fs::remove_file(&old.socket).unwrap();
    let listener = attacker.does(|| {
        let listener = UnixListener::bind(&old.socket).unwrap();
        open_to_all(&old.socket);
        listener
    });
    listener.set_nonblocking(true).unwrap();
    run(&["ps"]);
    let new: ServerEntry = serde_json::from_slice(&run(&["serve", "--json"]).stdout).unwrap();
    assert_ne!(new.pid, old.pid);
    assert!(listener.accept().is_err(), "somebody spoke to the other user");
    std::fs::remove_file(&old.socket).unwrap();
}

#[test]
fn a_state_folder_of_another_user_is_refused() {
    let place = Place::of_another_user();
    let attacker = User::reserve();
    let (around, own) = (place.path("state/patterm"), place.state().file(""));
    open_to_all(&place.path("state"));
    let refused = |folder: &Path, why: &str| {
        let output = place.patterm(&["ps"]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let folder = folder.display().to_string();
        let folder = folder.trim_end_matches('/');
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&format!("{folder} is not used: {why}")), "{error}");
    };
    attacker.does(|| {
        std::fs::create_dir(&around).unwrap();
        open_to_all(&around);
    });
    refused(&around, "another user owns it");
    std::fs::remove_dir(&around).unwrap();
    std::fs::create_dir(&around).unwrap();
    place.give_to_user(&around);
    open_to_all(&around);
    attacker.does(|| {
        std::fs::create_dir(&own).unwrap();
        open_to_all(&own);
    });
    refused(&own, "another user owns it");
    std::fs::remove_dir(&own).unwrap();
    open_to_all(&around);
    attacker.does(|| symlink("/tmp", own.to_string_lossy().trim_end_matches('/')).unwrap());
    refused(&own, "it is a link or a file");
}

#[test]
fn a_state_folder_that_others_may_enter_is_made_private() {
    let place = Place::new();
    let own = place.state().file("");
    std::fs::create_dir_all(&own).unwrap();
    open_to_all(&place.path("state/patterm"));
    open_to_all(&own);
    place.serve();
    assert_eq!((mode(&place.path("state/patterm")), mode(&own)), (0o700, 0o700));
}
