//! containerd through its command-line tool, whose streams are the server's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::command::{CommandRunner, finish};
use super::ctr::Ctr;
use super::info::{ContainerInfo, EngineError, is_name, set_by_creator};
use super::record::random_hex;
use super::settings::{EngineEndpoint, ExecSpec, RunSpec};
use super::{ContainerIdentity, EngineApi, OWNER_LABEL, cgroup, heartbeat, wrapper};
use crate::backend::{BoxFuture, Channel, ServerControl, ServerExit};

/// The wrapper ends a server within two seconds after its input was closed.
const END_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a starting container may take until its first process exists.
const CHECKS: usize = 50;
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The capabilities that containerd grants by default.
const DEFAULT_CAPABILITIES: [&str; 14] = [
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
    pub(super) fn new(
        endpoint: &EngineEndpoint,
        state: PathBuf,
        fifos: PathBuf,
        runner: CommandRunner,
    ) -> Self {
        Self { ctr: Ctr::new(endpoint, runner), state, fifos }
    }

    async fn look_up(&self, name: &str) -> Result<ContainerInfo, EngineError> {
        if !is_name(name) {
            return Err(EngineError::NotFound(name.to_owned()));
        }
        let info = self.ctr.info(name).await?;
        let mut labels = info.labels.unwrap_or_default();
        let mut label_names: BTreeSet<_> = labels.keys().cloned().collect();
        if !info.image.is_empty() {
            // Without the image it is unknown who set these labels.
            let configs = self.ctr.configs(&info.image).await.inspect_err(|error| {
                tracing::warn!(name, %error, "ignoring a container's labels: its image cannot be read");
            });
            match configs {
                Ok(configs) => {
                    for config in configs {
                        let carried = config.labels.unwrap_or_default();
                        label_names.extend(carried.keys().cloned());
                        labels = set_by_creator(labels, &carried);
                    }
                }
                Err(down @ EngineError::Unreachable(_)) => return Err(down),
                Err(_) => labels = BTreeMap::new(),
            }
        }
        let is_running = self.ctr.first_process(&info.id).await?.is_some();
        Ok(ContainerInfo { id: info.id, is_running, labels, label_names })
    }

    /// Starts a command in a container.
    async fn start(&self, id: &str, argv: &[String]) -> Result<Channel, EngineError> {
        let fifos = self.fifos.to_string_lossy().into_owned();
        let exec = random_hex::<8>().map_err(|e| EngineError::Failed(e.to_string()))?;
        let exec = format!("patterm-{exec}");
        let words = ["tasks", "exec", "--exec-id", &exec, "--fifo-dir", &fifos, id];
        let words = words.into_iter().chain(argv.iter().map(String::as_str));
        let channel =
            self.ctr.runner.open(self.ctr.argv(words)).await.map_err(EngineError::Failed)?;
        let kill = ["tasks", "kill", "--exec-id", &exec, "--signal", "SIGKILL", id];
        Ok(self.ended_by(channel, &kill))
    }

    /// A channel whose server is killed through containerd if it does not exit by itself.
    fn ended_by(&self, channel: Channel, kill: &[&str]) -> Channel {
        let words = kill.iter().map(|as_str| (*as_str).to_owned()).collect();
        let control = TaskControl { ctr: self.ctr.clone(), kill: words, control: channel.control };
        // The process on this machine is the tool's.
        Channel { control: Box::new(control), pid: None, ..channel }
    }

    /// Copies the wrapper into a container that has a shell; returns its path.
    async fn install(&self, id: &str) -> Result<String, String> {
        let bytes = wrapper::bytes()?;
        let script = ["/bin/sh", "-c", wrapper::INSTALL].map(str::to_owned);
        let argv: Vec<String> = script.into_iter().chain([wrapper::file_name()]).collect();
        let shell = self.start(id, &argv).await.map_err(|e| e.to_string())?;
        wrapper::installed(&finish(shell, bytes).await?)
    }

    async fn exec(&self, info: ContainerInfo, exec: ExecSpec) -> Result<Channel, EngineError> {
        self.ctr.check_reachable().await?;
        let mut installed = self.install(&info.id).await;
        if installed.is_err() {
            // The tool may lose what a command printed right before its end.
            installed = self.install(&info.id).await;
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
                    return Err(EngineError::Failed(message));
                }
                (exec.command, None)
            }
        };
        let channel = self.start(&info.id, &argv).await?;
        Ok(Channel { input: Box::new(heartbeat::input(channel.input, first)), ..channel })
    }

    async fn run(&self, own: RunSpec, identity: ContainerIdentity) -> Result<Channel, EngineError> {
        self.ctr.check_reachable().await?;
        let configs = self.ctr.configs(&own.image).await?;
        let command = match own.command.is_empty() {
            true => configs.into_iter().map(super::ctr::ImageConfig::command).next(),
            false => Some(own.command.clone()),
        };
        let command = command.filter(|command| !command.is_empty()).ok_or_else(|| {
            let image = &own.image;
            EngineError::Failed(format!(
                "the image `{image}` has no default command; set `command`"
            ))
        })?;
        let missing = |why: String| {
            EngineError::Failed(format!("containers of containerd need the wrapper: {why}"))
        };
        wrapper::bytes().map_err(|why| missing(why.to_owned()))?;
        let file = wrapper::on_disk(&self.state).map_err(|e| missing(e.to_string()))?;
        let words = words(&own, &identity, &self.fifos.to_string_lossy(), &file.to_string_lossy());
        let argv = wrapper::in_front(wrapper::MOUNTED, own.env.len(), &command);
        let words = words.iter().chain(&argv).map(String::as_str);
        let channel =
            self.ctr.runner.open(self.ctr.argv(words)).await.map_err(EngineError::Failed)?;
        let kill = ["tasks", "kill", "--all", "--signal", "SIGKILL", &identity.name];
        let channel = self.ended_by(channel, &kill);
        tokio::spawn(self.clone().cgroup(identity.name, own.processes));
        let first = Some(wrapper::variables(&own.env));
        Ok(Channel { input: Box::new(heartbeat::input(channel.input, first)), ..channel })
    }

    /// Limits the processes of a container that is starting; the tool cannot.
    async fn cgroup(self, name: String, most: u32) {
        for _ in 0..CHECKS {
            match self.ctr.first_process(&name).await {
                Ok(Some(pid)) => {
                    if let Err(error) = cgroup::processes(pid, most) {
                        tracing::warn!(name, %error, "cannot limit a container's processes");
                    }
                    return;
                }
                Ok(None) => tokio::time::sleep(CHECK_INTERVAL).await,
                Err(_) => return,
            }
        }
    }

    async fn list(&self, owner: &str) -> Result<Vec<String>, EngineError> {
        let filter = format!("labels.\"{OWNER_LABEL}\"=={owner}");
        let list = self.ctr.run(&["containers", "ls", "--quiet", &filter]).await?;
        Ok(String::from_utf8_lossy(&list).lines().map(|line| line.trim().to_owned()).collect())
    }

    async fn remove(&self, name: &str) -> Result<(), EngineError> {
        // Its task may be gone already.
        let _ = self.ctr.run(&["tasks", "rm", "--force", name]).await;
        match self.ctr.run(&["containers", "rm", name]).await {
            Ok(_) | Err(EngineError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The arguments of `run`: everything is closed, and there is no network unless requested.
fn words(own: &RunSpec, identity: &ContainerIdentity, fifos: &str, wrapper: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["run", "--rm", "--read-only", "--seccomp"].map(str::to_owned).into();
    let mut set = |name: &str, value: String| words.extend([name.to_owned(), value]);
    set("--fifo-dir", fifos.to_owned());
    set("--label", format!("{OWNER_LABEL}={}", identity.owner));
    set("--memory-limit", own.memory_bytes.to_string());
    for capability in DEFAULT_CAPABILITIES {
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
    words.extend([own.image.clone(), identity.name.clone()]);
    words
}

impl EngineApi for Containerd {
    fn find(&self, name: String) -> BoxFuture<Result<ContainerInfo, EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.look_up(&name).await })
    }

    fn exec(&self, info: ContainerInfo, exec: ExecSpec) -> BoxFuture<Result<Channel, EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.exec(info, exec).await })
    }

    fn run(
        &self,
        own: RunSpec,
        identity: ContainerIdentity,
    ) -> BoxFuture<Result<Channel, EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.run(own, identity).await })
    }

    fn list_owned(&self, owner: String) -> BoxFuture<Result<Vec<String>, EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.list(&owner).await })
    }

    fn remove(&self, name: String) -> BoxFuture<Result<(), EngineError>> {
        let engine = self.clone();
        Box::pin(async move { engine.remove(&name).await })
    }
}

struct TaskControl {
    ctr: Ctr,
    kill: Vec<String>,
    control: Box<dyn ServerControl>,
}

impl ServerControl for TaskControl {
    fn wait(&self) -> BoxFuture<ServerExit> {
        self.control.wait()
    }

    fn end(&self) -> BoxFuture<()> {
        let (ended, end) = (self.control.wait(), self.control.end());
        let (ctr, kill) = (self.ctr.clone(), self.kill.clone());
        Box::pin(async move {
            // The tool passes the end of the input on to the wrapper.
            if timeout(END_TIMEOUT, ended).await.is_err() {
                let words: Vec<&str> = kill.iter().map(String::as_str).collect();
                let _ = ctr.run(&words).await;
            }
            end.await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::ContainerEngine;
    use super::*;

    #[test]
    fn containers_are_locked_down_by_default() {
        let mut own = RunSpec::with_defaults(
            EngineEndpoint::default_of(ContainerEngine::Containerd),
            "local/a:1",
        );
        let identity = ContainerIdentity { name: "patterm-1".into(), owner: "0f".into() };
        let all = words(&own, &identity, "/f", "/w");
        for as_str in ["--read-only", "--seccomp", "CAP_SETUID", "patterm.owner=0f", "1073741824"] {
            assert!(all.iter().any(|known| known == as_str), "{as_str}: {all:?}");
        }
        assert!(!all.contains(&"--cni".to_owned()));
        assert_eq!(all[all.len() - 2..], ["local/a:1", "patterm-1"]);
        own.network = true;
        assert!(words(&own, &identity, "/f", "/w").contains(&"--cni".to_owned()));
    }
}
