//! Docker: a daemon of the test's own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::engine::{CLAIMING, Engine, LABEL, PLAIN, end, output_of, until};
use super::{all_engines, image};
use crate::support::Place;

pub(super) struct Docker {
    place: Place,
    daemon: Child,
}

impl Docker {
    pub(super) fn new() -> Self {
        let place = Place::new();
        let daemon = Self::daemon(&place);
        let docker = Self { place, daemon };
        docker.answers();
        let root = docker.place.folder("root");
        image::root(&root);
        for (name, change) in [(PLAIN, "LABEL made=here"), (CLAIMING, "LABEL patterm.bot=alpha")] {
            let archive = docker.place.path("image.tar");
            let mut tar = docker.place.command("tar".as_ref());
            output_of(tar.arg("-C").arg(&root).arg("-cf").arg(&archive).arg("."));
            let mut import = docker.command(&["import", "--change", change]);
            import.args(["--change", "CMD [\"/app/mcp\"]"]);
            output_of(import.arg(&archive).arg(name));
        }
        docker
    }

    fn daemon(place: &Place) -> Child {
        let log = std::fs::File::create(place.path("dockerd.log")).unwrap();
        let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
        let mut daemon = place.command("dockerd".as_ref());
        daemon.args(["--data-root", &path("data"), "--exec-root", &path("exec")]);
        daemon.args(["--pidfile", &path("dockerd.pid"), "--bridge", "none"]);
        daemon.args(["--host", &format!("unix://{}", path("docker.sock"))]);
        daemon.args(["--iptables=false", "--ip6tables=false", "--live-restore"]);
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    fn answers(&self) {
        until("dockerd answers", || {
            let mut version = self.command(&["version"]);
            version.output().unwrap().status.success().then_some(())
        });
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command("docker".as_ref());
        command.arg("--host").arg(format!("unix://{}", self.socket().display()));
        command.args(words);
        command
    }

    fn ask(&self, words: &[&str]) -> String {
        output_of(&mut self.command(words))
    }
}

impl Engine for Docker {
    fn word(&self) -> &'static str {
        "docker"
    }

    fn socket(&self) -> PathBuf {
        self.place.path("docker.sock")
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
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    fn restart(&mut self) {
        // Its own containerd died with it; if nobody reaps it, the file would still name a process.
        for file in ["dockerd.pid", "exec/containerd/containerd.pid"] {
            let _ = std::fs::remove_file(self.place.path(file));
        }
        self.daemon = Self::daemon(&self.place);
        self.answers();
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let all = self.command(&["ps", "--all", "--quiet"]).output();
        let all = String::from_utf8(all.unwrap().stdout).unwrap();
        for container in all.lines() {
            let _ = self.command(&["rm", "--force", container]).output();
        }
        end(&mut self.daemon, &self.place);
    }
}

#[test]
fn only_permitted_callers_use_the_server_in_a_container() {
    all_engines::only_permitted_callers_use_the_server_in_a_container(&Docker::new());
}

#[test]
fn containers_without_a_label_are_admitted_if_the_settings_say_so() {
    all_engines::containers_without_a_label_are_admitted_if_the_settings_say_so(&Docker::new());
}

#[test]
fn ten_callers_at_once() {
    all_engines::ten_callers_at_once(&Docker::new());
}

#[test]
fn an_engine_that_dies_and_returns() {
    all_engines::an_engine_that_dies_and_returns(&mut Docker::new());
}

#[test]
fn patterm_is_killed_and_leaves_nothing_behind() {
    all_engines::patterm_is_killed_and_leaves_nothing_behind(&Docker::new());
}

#[test]
fn a_container_of_our_own() {
    all_engines::a_container_of_our_own(&Docker::new());
}

#[test]
fn a_container_whose_root_cannot_be_written() {
    let docker = Docker::new();
    let owner = format!("{LABEL}=alpha");
    let mut run = docker.command(&["run", "--detach", "--network", "none", "--read-only"]);
    run.args(["--tmpfs", "/run:exec", "--name", "sealed", "--label", &owner]);
    output_of(run.args([PLAIN, "sleep", "100000"]));
    all_engines::nothing_stays_in(&docker, "sealed");
}
