//! Somebody whose ssh session drops.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::harness::Harness;
use crate::recorder::Recorder;
use crate::svg;
use crate::walk::{LARGE, SMALL, Story, Walk};

const STORY: Story = Story {
    name: "ssh",
    title: "An ssh session that drops",
    intro: "patterm runs on another machine, here behind an sshd of its own on loopback. The ssh client is killed with \
            SIGKILL while a program counts and another one waits for an answer.",
    stumbles: &[
        "Nothing had to be changed. The window of the killed client stays as it was, with mouse \
         reporting switched on; no program on the other side can repair that, and neither can \
         tmux: close it, or type `reset`.",
        "A client whose connection hangs without being closed stays attached. It disturbs nobody: \
         panes have the size of the terminal in which somebody typed last.",
    ],
};

/// How long sshd may take to listen.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn record(docs: &Path) -> anyhow::Result<()> {
    let harness = Harness::plain("shop")?;
    let server = SshServer::start(&harness)?;
    let mut walk = Walk::begin(STORY, harness)?;
    let taken = take(&mut walk, &server);
    taken.map_err(|why| anyhow::anyhow!("{why:#}\n{}", walk.person.text()))?;
    walk.write(docs)
}

fn take(walk: &mut Walk, server: &SshServer) -> anyhow::Result<()> {
    let login = format!("exec ssh -F {} shop", server.folder.join("client").display());
    let window = |walk: &Walk, size| Recorder::start(walk.harness.command("setsid"), &login, size);
    walk.person = window(walk, SMALL)?;
    walk.person.until("~/shop $")?;
    walk.run("patterm", "ctrl+b: keys")?;
    walk.person.write("c")?;
    walk.person.until("~/shop $")?;
    walk.run("for n in $(seq 9999); do echo line $n; sleep 0.2; done", "line 3")?;
    walk.person.lead("%")?;
    walk.person.until("new shell")?;
    walk.person.write("\r")?;
    walk.person.until("bash-2")?;
    walk.person.until("~/shop $")?;
    walk.person.write("read -p 'Deploy? ' answer; echo you said $answer\r")?;
    walk.person.until("Deploy?")?;
    walk.person.write("yes, bu")?;
    walk.person.pause(500)?;
    walk.step("`ssh shop`, `patterm`: a program counts, and an answer is half typed when the connection drops.")?;
    let pid = i32::try_from(walk.person.pid())?;
    let ssh = rustix::process::Pid::from_raw(pid).context("no process")?;
    rustix::process::kill_process(ssh, rustix::process::Signal::KILL)?;
    let counted = || -> anyhow::Result<u32> {
        let shown = walk.harness.command("patterm").args(["screen", "p1"]).output()?.stdout;
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let last = shown.lines().rev().find_map(|line| line.strip_prefix("line "));
        Ok(last.and_then(|number| number.trim().parse().ok()).unwrap_or(0))
    };
    let (before, deadline) = (counted()?, Instant::now() + TIMEOUT);
    while counted()? < before + 10 {
        anyhow::ensure!(Instant::now() < deadline, "it stopped counting at {before}");
        std::thread::yield_now();
    }
    walk.person = window(walk, SMALL)?;
    walk.person.until("~/shop $")?;
    walk.run("patterm ps", "bash-2")?;
    walk.step("A new window, `ssh shop` again: both are alive, with nobody attached.")?;
    walk.run("clear; patterm", "Deploy? yes, bu")?;
    walk.person.until("line ")?;
    walk.picture("`patterm`: it has counted on, and the half-typed answer is still there.")?;
    walk.person.write("t later\r")?;
    walk.person.until("you said yes, but later")?;
    walk.step("The answer is completed.")?;
    let mut large = window(walk, LARGE)?;
    large.until("~/shop $")?;
    large.write("patterm\r")?;
    large.until("you said")?;
    large.pause(1_500)?;
    walk.add_picture(
        "From another computer, with a large window, while the first one stays attached.",
        svg::draw(&large.screen),
    )
}

/// An sshd on loopback with its own settings and keys.
struct SshServer {
    folder: PathBuf,
    process: Child,
}

impl SshServer {
    #[expect(clippy::disallowed_methods, reason = "starts the recorded programs")]
    fn start(harness: &Harness) -> anyhow::Result<Self> {
        let folder = harness.home().join("ssh");
        std::fs::create_dir_all(&folder)?;
        for key in ["host", "you"] {
            let mut generate = Command::new("ssh-keygen");
            generate.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
            anyhow::ensure!(generate.status()?.success(), "ssh-keygen failed");
        }
        std::fs::copy(folder.join("you.pub"), folder.join("authorized"))?;
        // Free now, and hardly taken by others until sshd listens there.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let path = |name: &str| folder.join(name).display().to_string();
        let shell = format!("cd {} && exec bash", harness.project().display());
        let mut server = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nForceCommand {shell}\nSetEnv",
            path("host"),
            path("authorized"),
        );
        for (name, value) in harness.command("sh").get_envs() {
            if let Some(value) = value {
                write!(server, " {}={}", name.display(), value.display())?;
            }
        }
        let client = format!(
            "Host shop\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\nRequestTTY yes\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nIdentityAgent none\n",
            path("you"),
        );
        std::fs::write(folder.join("server"), server + "\n")?;
        std::fs::write(folder.join("client"), client)?;
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700))?;
        // Its own path must be absolute.
        let sshd = std::env::var_os("SSHD").unwrap_or_else(|| "/usr/sbin/sshd".into());
        let mut command = Command::new(&sshd);
        command.args(["-D", "-e", "-f"]).arg(folder.join("server")).stdin(Stdio::null());
        let log = std::fs::File::create(folder.join("log"))?;
        let started = command.stderr(log).spawn();
        let process = started.with_context(|| {
            format!("cannot start {}; Debian's openssh-server has it, or set SSHD", sshd.display())
        })?;
        let server = Self { folder, process };
        server.wait_until_it_listens(port)?;
        Ok(server)
    }

    fn wait_until_it_listens(&self, port: u16) -> anyhow::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = || std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            anyhow::ensure!(Instant::now() < deadline, "sshd does not listen: {}", log());
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
