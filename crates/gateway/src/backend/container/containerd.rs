//! containerd through its command-line tool, whose streams are the server's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::ctr::Ctr;
use super::record::chance;
use super::settings::{Exec, Own, Place};
use super::target::{Target, Trouble, is_name, set_by_creator};
use super::tool::{Tools, finish};
use super::{Named, OWNER_LABEL, Reach, bound, pulse, wrapper};
use crate::backend::{Channel, Later, Life};

/// The wrapper ends a server within two seconds after its input was closed.
const END_PATIENCE: Duration = Duration::from_secs(4);

/// How long a starting container may take until its first process exists.
const LOOKS: usize = 50;
const LOOK: Duration = Duration::from_millis(100);

/// The capabilities that containerd grants by default.
const USUAL_CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// containerd.
#[derive(Debug, Clone)]
pub(super) struct Containerd {
    ctr: Ctr,
    state: PathBuf,
    fifos: PathBuf,
}

impl Containerd {
    pub(super) fn new(place: &Place, state: PathBuf, fifos: PathBuf, tools: Tools) -> Self {
        Self { ctr: Ctr::new(place, tools), state, fifos }
    }

    async fn look_up(&self, name: &str) -> Result<Target, Trouble> {
        if !is_name(name) {
            return Err(Trouble::Missing(name.to_owned()));
        }
        let info = self.ctr.info(name).await?;
        let mut labels = info.labels.unwrap_or_default();
        let mut named: BTreeSet<_> = labels.keys().cloned().collect();
        if !info.image.is_empty() {
            // Without the image it is unknown who set these labels.
            let configs = self.ctr.configs(&info.image).await.inspect_err(|trouble| {
                tracing::warn!(name, %trouble, "ignoring a container's labels: its image cannot be read");
            });
            match configs {
                Ok(configs) => {
                    for config in configs {
                        let carried = config.labels.unwrap_or_default();
                        named.extend(carried.keys().cloned());
                        labels = set_by_creator(labels, &carried);
                    }
                }
                Err(down @ Trouble::Down(_)) => return Err(down),
                Err(_) => labels = BTreeMap::new(),
            }
        }
        let is_running = self.ctr.first_process(&info.id).await?.is_some();
        Ok(Target { id: info.id, is_running, labels, named })
    }

    /// Starts a command in a container.
    async fn start(&self, id: &str, argv: &[String]) -> Result<Channel, Trouble> {
        let fifos = self.fifos.to_string_lossy().into_owned();
        let exec = chance::<8>().map_err(|e| Trouble::Failed(e.to_string()))?;
        let exec = format!("patterm-{exec}");
        let words = ["tasks", "exec", "--exec-id", &exec, "--fifo-dir", &fifos, id];
        let words = words.into_iter().chain(argv.iter().map(String::as_str));
        let channel = self.ctr.tools.open(self.ctr.argv(words)).await.map_err(Trouble::Failed)?;
        let kill = ["tasks", "kill", "--exec-id", &exec, "--signal", "SIGKILL", id];
        Ok(self.ended_by(channel, &kill))
    }

    /// A channel whose server is killed through containerd if it does not exit by itself.
    fn ended_by(&self, channel: Channel, kill: &[&str]) -> Channel {
        let words = kill.iter().map(|word| (*word).to_owned()).collect();
        let life = TaskLife { ctr: self.ctr.clone(), kill: words, life: channel.life };
        // The process on this machine is the tool's.
        Channel { life: Box::new(life), pid: None, ..channel }
    }

    /// Copies the wrapper into a container that has a shell; returns its path.
    async fn install(&self, id: &str) -> Result<String, String> {
        let bytes = wrapper::bytes()?;
        let script = ["/bin/sh", "-c", wrapper::INSTALL].map(str::to_owned);
        let argv: Vec<String> = script.into_iter().chain([wrapper::file_name()]).collect();
        let shell = self.start(id, &argv).await.map_err(|e| e.to_string())?;
        wrapper::installed(&finish(shell, bytes).await?)
    }

    async fn exec(&self, target: Target, exec: Exec) -> Result<Channel, Trouble> {
        self.ctr.reach().await?;
        let mut installed = self.install(&target.id).await;
        if installed.is_err() {
            // The tool may lose what a command printed right before its end.
            installed = self.install(&target.id).await;
        }
        let (argv, first) = match installed {
            Ok(wrapper) => {
                let argv = wrapper::in_front(&wrapper, exec.env.len(), &exec.command);
                (argv, Some(wrapper::variables(&exec.env)))
            }
            Err(why) => {
                let container = &exec.container;
                tracing::warn!(container, why, "running a server without the wrapper");
                if !exec.env.is_empty() {
                    let message = format!("`env` needs the wrapper in `{container}`: {why}");
                    return Err(Trouble::Failed(message));
                }
                (exec.command, None)
            }
        };
        let channel = self.start(&target.id, &argv).await?;
        Ok(Channel { input: Box::new(pulse::input(channel.input, first)), ..channel })
    }

    async fn run(&self, own: Own, named: Named) -> Result<Channel, Trouble> {
        self.ctr.reach().await?;
        let configs = self.ctr.configs(&own.image).await?;
        let command = match own.command.is_empty() {
            true => configs.into_iter().map(super::ctr::ImageConfig::command).next(),
            false => Some(own.command.clone()),
        };
        let command = command.filter(|command| !command.is_empty()).ok_or_else(|| {
            let image = &own.image;
            Trouble::Failed(format!("the image `{image}` has no default command; set `command`"))
        })?;
        let missing = |why: String| {
            Trouble::Failed(format!("containers of containerd need the wrapper: {why}"))
        };
        wrapper::bytes().map_err(|why| missing(why.to_owned()))?;
        let file = wrapper::on_disk(&self.state).map_err(|e| missing(e.to_string()))?;
        let words = words(&own, &named, &self.fifos.to_string_lossy(), &file.to_string_lossy());
        let argv = wrapper::in_front(wrapper::MOUNTED, own.env.len(), &command);
        let words = words.iter().chain(&argv).map(String::as_str);
        let channel = self.ctr.tools.open(self.ctr.argv(words)).await.map_err(Trouble::Failed)?;
        let kill = ["tasks", "kill", "--all", "--signal", "SIGKILL", &named.name];
        let channel = self.ended_by(channel, &kill);
        tokio::spawn(self.clone().bound(named.name, own.processes));
        let first = Some(wrapper::variables(&own.env));
        Ok(Channel { input: Box::new(pulse::input(channel.input, first)), ..channel })
    }

    /// Limits the processes of a container that is starting; the tool cannot.
    async fn bound(self, name: String, most: u32) {
        for _ in 0..LOOKS {
            match self.ctr.first_process(&name).await {
                Ok(Some(pid)) => {
                    if let Err(error) = bound::processes(pid, most) {
                        tracing::warn!(name, %error, "cannot limit a container's processes");
                    }
                    return;
                }
                Ok(None) => tokio::time::sleep(LOOK).await,
                Err(_) => return,
            }
        }
    }

    async fn list(&self, owner: &str) -> Result<Vec<String>, Trouble> {
        let filter = format!("labels.\"{OWNER_LABEL}\"=={owner}");
        let list = self.ctr.run(&["containers", "ls", "--quiet", &filter]).await?;
        Ok(String::from_utf8_lossy(&list).lines().map(|line| line.trim().to_owned()).collect())
    }

    async fn remove(&self, name: &str) -> Result<(), Trouble> {
        // Its task may be gone already.
        let _ = self.ctr.run(&["tasks", "rm", "--force", name]).await;
        match self.ctr.run(&["containers", "rm", name]).await {
            Ok(_) | Err(Trouble::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

/// The arguments of `run`: everything is closed, and there is no network unless requested.
fn words(own: &Own, named: &Named, fifos: &str, wrapper: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["run", "--rm", "--read-only", "--seccomp"].map(str::to_owned).into();
    let mut set = |name: &str, value: String| words.extend([name.to_owned(), value]);
    set("--fifo-dir", fifos.to_owned());
    set("--label", format!("{OWNER_LABEL}={}", named.owner));
    set("--memory-limit", own.memory.to_string());
    for capability in USUAL_CAPABILITIES {
        set("--cap-drop", capability.to_owned());
    }
    set("--mount", format!("type=bind,src={wrapper},dst={},options=rbind:ro", wrapper::MOUNTED));
    let options = "options=rw:nosuid:nodev:size=64m";
    set("--mount", format!("type=tmpfs,src=tmpfs,dst=/tmp,{options}"));
    for mount in &own.mounts {
        let (source, target) = (mount.source.display(), mount.target.display());
        let kind = if mount.writable { "rw" } else { "ro" };
        set("--mount", format!("type=bind,src={source},dst={target},options=rbind:{kind}"));
    }
    if own.network {
        words.push("--cni".to_owned());
    }
    words.extend([own.image.clone(), named.name.clone()]);
    words
}

impl Reach for Containerd {
    fn find(&self, name: String) -> Later<Result<Target, Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.look_up(&name).await })
    }

    fn exec(&self, target: Target, exec: Exec) -> Later<Result<Channel, Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.exec(target, exec).await })
    }

    fn run(&self, own: Own, named: Named) -> Later<Result<Channel, Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.run(own, named).await })
    }

    fn ours(&self, owner: String) -> Later<Result<Vec<String>, Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.list(&owner).await })
    }

    fn remove(&self, name: String) -> Later<Result<(), Trouble>> {
        let engine = self.clone();
        Box::pin(async move { engine.remove(&name).await })
    }
}

struct TaskLife {
    ctr: Ctr,
    kill: Vec<String>,
    life: Box<dyn Life>,
}

impl Life for TaskLife {
    fn ended(&self) -> Later<String> {
        self.life.ended()
    }

    fn end(&self) -> Later<()> {
        let (ended, end) = (self.life.ended(), self.life.end());
        let (ctr, kill) = (self.ctr.clone(), self.kill.clone());
        Box::pin(async move {
            // The tool passes the end of the input on to the wrapper.
            if timeout(END_PATIENCE, ended).await.is_err() {
                let words: Vec<&str> = kill.iter().map(String::as_str).collect();
                let _ = ctr.run(&words).await;
            }
            end.await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Engine;
    use super::*;

    #[test]
    fn containers_are_locked_down_by_default() {
        let mut own = Own::usual(Place::usual(Engine::Containerd), "local/a:1");
        let named = Named { name: "patterm-1".into(), owner: "0f".into() };
        let all = words(&own, &named, "/f", "/w");
        for word in ["--read-only", "--seccomp", "CAP_SETUID", "patterm.owner=0f", "1073741824"] {
            assert!(all.iter().any(|known| known == word), "{word}: {all:?}");
        }
        assert!(!all.contains(&"--cni".to_owned()));
        assert_eq!(all[all.len() - 2..], ["local/a:1", "patterm-1"]);
        own.network = true;
        assert!(words(&own, &named, "/f", "/w").contains(&"--cni".to_owned()));
    }
}
