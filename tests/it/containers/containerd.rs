//! containerd: a daemon of the test's own, and images in its own format.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::engine::{CLAIMING, Engine, PLAIN, end, output_of, until};
use super::harness::mark;
use super::{all_engines, image};
use crate::support::Place;

struct Containerd {
    place: Place,
    daemon: Child,
}

impl Containerd {
    fn new() -> Self {
        let place = Place::new();
        let daemon = Self::daemon(&place);
        let containerd = Self { place, daemon };
        containerd.answers();
        let root = containerd.place.folder("root");
        image::root(&root);
        let layer = containerd.place.path("layer.tar");
        let mut tar = containerd.place.command("tar".as_ref());
        output_of(tar.arg("-C").arg(&root).arg("-cf").arg(&layer).arg("."));
        for (name, labels) in
            [(PLAIN, json!({"made": "here"})), (CLAIMING, json!({"patterm.bot": "alpha"}))]
        {
            let archive = containerd.archive(name, &layer, &labels);
            containerd.ask(&["images", "import", archive.to_str().unwrap()]);
        }
        containerd
    }

    fn daemon(place: &Place) -> Child {
        let log = std::fs::File::create(place.path("containerd.log")).unwrap();
        let path = |name: &str| place.path(name).to_str().unwrap().to_owned();
        let settings = "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n";
        std::fs::write(place.path("config.toml"), settings).unwrap();
        let mut daemon = place.command("containerd".as_ref());
        daemon.args(["--config", &path("config.toml"), "--address", &path("containerd.sock")]);
        daemon.args(["--root", &path("data"), "--state", &path("tasks")]);
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    fn answers(&self) {
        until("containerd answers", || {
            let mut version = self.command(&["version"]);
            version.output().unwrap().status.success().then_some(())
        });
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command("ctr".as_ref());
        command.arg("--address").arg(self.socket()).args(["--namespace", &mark()]).args(words);
        command
    }

    fn ask(&self, words: &[&str]) -> String {
        output_of(&mut self.command(words))
    }

    /// An image as an archive of the Open Container Initiative's layout.
    fn archive(&self, name: &str, layer: &Path, labels: &Value) -> PathBuf {
        let folder = self.place.folder(&name.replace(['/', ':'], "-"));
        std::fs::create_dir_all(folder.join("blobs/sha256")).unwrap();
        let put = |bytes: &[u8], kind: &str| {
            let hash: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
            std::fs::write(folder.join("blobs/sha256").join(&hash), bytes).unwrap();
            let kind = format!("application/vnd.oci.image.{kind}");
            json!({"mediaType": kind, "digest": format!("sha256:{hash}"), "size": bytes.len()})
        };
        let layer = put(&std::fs::read(layer).unwrap(), "layer.v1.tar");
        let machine = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let config = json!({
            "architecture": machine, "os": "linux",
            "config": {"Labels": labels, "Cmd": [image::COMMAND], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        });
        let config = put(config.to_string().as_bytes(), "config.v1+json");
        let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
        let mut manifest = put(manifest.to_string().as_bytes(), "manifest.v1+json");
        manifest["annotations"] = json!({"io.containerd.image.name": name});
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
        let layout = json!({"imageLayoutVersion": "1.0.0"});
        std::fs::write(folder.join("oci-layout"), layout.to_string()).unwrap();
        let archive = folder.with_extension("tar");
        let mut tar = self.place.command("tar".as_ref());
        output_of(tar.arg("-C").arg(&folder).arg("-cf").arg(&archive).arg("."));
        archive
    }
}

impl Engine for Containerd {
    fn word(&self) -> &'static str {
        "containerd"
    }

    fn socket(&self) -> PathBuf {
        self.place.path("containerd.sock")
    }

    fn run(&self, name: &str, image: &str, labels: &[(&str, &str)]) {
        let mut command = self.command(&["run", "--detach", "--null-io"]);
        for (key, value) in labels {
            command.args(["--label", &format!("{key}={value}")]);
        }
        output_of(command.args([image, name, "sleep", "100000"]));
    }

    fn stop(&self, name: &str) {
        self.ask(&["tasks", "kill", "--signal", "SIGKILL", name]);
        until("the task ends", || self.ask(&["tasks", "ls"]).contains("STOPPED").then_some(()));
    }

    fn start(&self, name: &str) {
        let _ = self.command(&["tasks", "rm", "--force", name]).output();
        self.ask(&["tasks", "start", "--detach", "--null-io", name]);
    }

    fn labelled(&self, label: &str) -> Vec<String> {
        let filter = format!("labels.\"{label}\"");
        let list = self.ask(&["containers", "ls", "--quiet", &filter]);
        list.lines().map(str::to_owned).collect()
    }

    fn first_process(&self, name: &str) -> u32 {
        let tasks = self.ask(&["tasks", "ls"]);
        let row = tasks.lines().find(|row| row.split_whitespace().next() == Some(name)).unwrap();
        row.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    fn restart(&mut self) {
        self.daemon = Self::daemon(&self.place);
        self.answers();
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let all = self.command(&["containers", "ls", "--quiet"]).output();
        let all = String::from_utf8(all.unwrap().stdout).unwrap();
        for container in all.lines() {
            let _ = self.command(&["tasks", "rm", "--force", container]).output();
            let _ = self.command(&["containers", "rm", container]).output();
        }
        end(&mut self.daemon, &self.place);
    }
}

#[test]
fn only_permitted_callers_use_the_server_in_a_container() {
    all_engines::only_permitted_callers_use_the_server_in_a_container(&Containerd::new());
}

#[test]
fn containers_without_a_label_are_admitted_if_the_settings_say_so() {
    all_engines::containers_without_a_label_are_admitted_if_the_settings_say_so(&Containerd::new());
}

#[test]
fn ten_callers_at_once() {
    all_engines::ten_callers_at_once(&Containerd::new());
}

#[test]
fn an_engine_that_dies_and_returns() {
    all_engines::an_engine_that_dies_and_returns(&mut Containerd::new());
}

#[test]
fn patterm_is_killed_and_leaves_nothing_behind() {
    all_engines::patterm_is_killed_and_leaves_nothing_behind(&Containerd::new());
}

#[test]
fn a_container_of_our_own() {
    all_engines::a_container_of_our_own(&Containerd::new());
}
