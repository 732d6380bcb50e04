//! Podman: a service of the test's own, by the same API as Docker's.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::engine::{CLAIMING, Engine, PLAIN, end, output_of, until};
use super::{all_engines, image};
use crate::support::Place;

/// Debian's podman needs a runtime that it does not depend on, and permission to set limits.
const SETTINGS: &str = r#"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
events_logger = "file"
"#;

struct Podman {
    place: Place,
    service: Child,
}

impl Podman {
    fn new() -> Self {
        let mut place = Place::new();
        std::fs::write(place.path("containers.conf"), SETTINGS).unwrap();
        let (data, tasks) = (place.path("data"), place.path("tasks"));
        let storage = format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            data.display(),
            tasks.display(),
        );
        std::fs::write(place.path("storage.conf"), storage).unwrap();
        place.set("CONTAINERS_CONF", place.path("containers.conf"));
        place.set("CONTAINERS_STORAGE_CONF", place.path("storage.conf"));
        let root = place.folder("root");
        image::root(&root);
        let archive = place.path("image.tar");
        let mut tar = place.command("tar".as_ref());
        output_of(tar.arg("-C").arg(&root).arg("-cf").arg(&archive).arg("."));
        let podman = Self { service: Self::service(&place), place };
        for (name, change) in [(PLAIN, "LABEL made=here"), (CLAIMING, "LABEL patterm.bot=alpha")] {
            let mut import = podman.command(&["import", "--change", change]);
            import.args(["--change", "CMD [\"/app/mcp\"]"]);
            output_of(import.arg(&archive).arg(name));
        }
        podman.answers();
        podman
    }

    fn service(place: &Place) -> Child {
        let log = std::fs::File::create(place.path("podman.log")).unwrap();
        let socket = format!("unix://{}", place.path("podman.sock").display());
        let mut service = Self::in_place(place);
        service.args(["system", "service", "--time", "0", &socket]);
        service.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    fn answers(&self) {
        until("podman answers", || {
            std::os::unix::net::UnixStream::connect(self.socket()).ok().map(drop)
        });
    }

    fn in_place(place: &Place) -> Command {
        let mut command = place.command("podman".as_ref());
        command.args(["--runtime", "runc", "--cgroup-manager", "cgroupfs"]);
        command.arg("--root").arg(place.path("data")).arg("--runroot").arg(place.path("tasks"));
        command.arg("--tmpdir").arg(place.path("tmp"));
        command
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Self::in_place(&self.place);
        command.args(words);
        command
    }

    fn ask(&self, words: &[&str]) -> String {
        output_of(&mut self.command(words))
    }
}

impl Engine for Podman {
    fn word(&self) -> &'static str {
        "podman"
    }

    fn socket(&self) -> PathBuf {
        self.place.path("podman.sock")
    }

    fn run(&self, name: &str, image: &str, labels: &[(&str, &str)]) {
        let mut command = self.command(&["run", "--detach", "--network", "none", "--name", name]);
        for (key, value) in labels {
            command.args(["--label", &format!("{key}={value}")]);
        }
        output_of(command.args([image, "sleep", "100000"]));
    }

    fn stop(&self, name: &str) {
        self.ask(&["kill", name]);
    }

    fn start(&self, name: &str) {
        self.ask(&["start", name]);
    }

    fn labelled(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        let list = self.ask(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
        list.lines().map(str::to_owned).collect()
    }

    fn first_process(&self, name: &str) -> u32 {
        self.ask(&["inspect", "--format", "{{.State.Pid}}", name]).parse().unwrap()
    }

    fn kill(&mut self) {
        self.service.kill().unwrap();
        self.service.wait().unwrap();
    }

    fn restart(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        self.service = Self::service(&self.place);
        self.answers();
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = self.command(&["rm", "--all", "--force", "--time", "0"]).output();
        end(&mut self.service, &self.place);
    }
}

#[test]
fn only_permitted_callers_use_the_server_in_a_container() {
    all_engines::only_permitted_callers_use_the_server_in_a_container(&Podman::new());
}

#[test]
fn containers_without_a_label_are_admitted_if_the_settings_say_so() {
    all_engines::containers_without_a_label_are_admitted_if_the_settings_say_so(&Podman::new());
}

#[test]
fn an_engine_that_dies_and_returns() {
    all_engines::an_engine_that_dies_and_returns(&mut Podman::new());
}

#[test]
fn patterm_is_killed_and_leaves_nothing_behind() {
    all_engines::patterm_is_killed_and_leaves_nothing_behind(&Podman::new());
}

#[test]
fn a_container_of_our_own() {
    all_engines::a_container_of_our_own(&Podman::new());
}
