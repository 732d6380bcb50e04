//! Starts a program: a PTY, an init, and below it the program in a session of its own.

use std::ffi::{CString, NulError, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::tcsetwinsize;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::environment::Environment;
use crate::init::Init;
use crate::pane::Pane;
use crate::size::Size;

/// How long a program may take from fork to exec before it counts as started: only a dead network
/// file system takes longer.
const EXEC_TIMEOUT: Duration = Duration::from_secs(10);

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments. A name without a slash is looked up in `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment.
    #[serde(flatten)]
    pub env: Environment,
    /// Its working directory.
    pub working_dir: PathBuf,
    /// The size of its terminal.
    pub size: Size,
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct SpawnError {
    /// The cause.
    pub fault: SpawnFault,
    /// What went wrong, and with which value.
    pub message: String,
}

/// The cause of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpawnFault {
    /// The program does not exist or cannot be run.
    Request,
    /// The machine has run out of processes, descriptors or terminals.
    Exhausted,
    /// Anything else.
    System,
}

impl SpawnError {
    pub(crate) fn new(fault: SpawnFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }

    fn system(what: &str, errno: Errno) -> Self {
        let exhausted = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::NOSPC];
        let fault = match exhausted.contains(&errno) {
            true => SpawnFault::Exhausted,
            false => SpawnFault::System,
        };
        Self::new(fault, format!("cannot {what}: {errno}"))
    }
}

fn failed(what: &'static str) -> impl Fn(Errno) -> SpawnError {
    move |errno| SpawnError::system(what, errno)
}

/// The step between fork and exec that failed.
#[derive(Clone, Copy)]
enum SpawnStage {
    Fork = 1,
    Terminal = 2,
    Directory = 3,
    Exec = 4,
}

/// The program in the form that exec takes; built before the fork, where allocating is safe.
struct ExecImage {
    path: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    working_dir: CString,
    /// `sh path …`, for a script without an interpreter line.
    as_script: Vec<CString>,
}

/// A program's standard input, output and error, if it has no terminal.
pub(crate) type Streams = [OwnedFd; 3];

/// Starts a program, in a terminal unless it has streams. Returns its pane, and the id and pidfd of
/// its init.
pub(crate) fn spawn(
    program: &Program,
    streams: Option<Streams>,
) -> Result<(Pane, Pid, OwnedFd), SpawnError> {
    let image = ExecImage::new(program)?;
    let (master, stdio) = match streams {
        Some(streams) => (dev_null()?, Stdio::Streams(streams)),
        None => {
            let (master, slave) = open_terminal(program.size)?;
            (master, Stdio::Terminal(slave))
        }
    };
    start(&image, master, stdio)
}

/// Opens a terminal: its master, and the program's side.
fn open_terminal(size: Size) -> Result<(OwnedFd, OwnedFd), SpawnError> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .map_err(failed("open a terminal"))?;
    grantpt(&master).and_then(|()| unlockpt(&master)).map_err(failed("open a terminal"))?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let slave = ioctl_tiocgptpeer(&master, flags).map_err(failed("open a terminal"))?;
    tcsetwinsize(&slave, size.into()).map_err(failed("size a terminal"))?;
    Ok((master, slave))
}

/// Takes the place of the terminal in a pane without one.
fn dev_null() -> Result<OwnedFd, SpawnError> {
    let file = File::options().read(true).write(true).open("/dev/null");
    file.map(OwnedFd::from).map_err(|e| io_failed("open /dev/null", &e))
}

fn start(
    image: &ExecImage,
    master: OwnedFd,
    stdio: Stdio,
) -> Result<(Pane, Pid, OwnedFd), SpawnError> {
    let (control, init_control) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(failed("make a socket"))?;
    let status = memfd_create("patterm-status", MemfdFlags::CLOEXEC)
        .map_err(failed("make a status record"))?;
    let init_status = status.try_clone().map_err(|e| io_failed("copy a descriptor", &e))?;
    let (report, init_report) = std::io::pipe().map_err(|e| io_failed("make a pipe", &e))?;
    let descriptors = InitDescriptors {
        control: init_control,
        status: init_status,
        report: init_report.into(),
        stdio,
    };
    // SAFETY: this process has a single thread, so no lock of the allocator or the C library can be
    // held by a thread that does not exist in the child.
    let init = match unsafe { libc::fork() } {
        -1 => return Err(SpawnError::system("start a process", last_errno())),
        0 => {
            init_main(image, descriptors);
        }
        init => init,
    };
    drop(descriptors);
    let init = Pid::from_raw(init).ok_or_else(|| failed("start a process")(Errno::SRCH))?;
    match wait_for_exec(report.into(), image) {
        Ok(()) => {
            let pidfd = pidfd_open(init, PidfdFlags::empty()).map_err(failed("watch a process"))?;
            Ok((Pane { master, control, status }, init, pidfd))
        }
        Err(error) => {
            // The init has no program and exits by itself.
            let _ = rustix::process::waitpid(Some(init), rustix::process::WaitOptions::empty());
            Err(error)
        }
    }
}

/// The descriptors that belong to the init.
struct InitDescriptors {
    control: OwnedFd,
    status: OwnedFd,
    report: OwnedFd,
    stdio: Stdio,
}

/// What a program reads from and prints to.
enum Stdio {
    Terminal(OwnedFd),
    Streams(Streams),
}

impl Stdio {
    /// Makes it the standard streams of this process, a session leader.
    fn take(&self) -> Result<(), Errno> {
        let [input, output, error] = match self {
            Self::Terminal(slave) => {
                rustix::process::ioctl_tiocsctty(slave)?;
                [slave, slave, slave]
            }
            Self::Streams([input, output, error]) => [input, output, error],
        };
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(error)
    }
}

impl ExecImage {
    fn new(program: &Program) -> Result<Self, SpawnError> {
        let Some(name) = program.argv.first().filter(|name| !name.is_empty()) else {
            return Err(SpawnError::new(SpawnFault::Request, "`argv` names no program"));
        };
        if !program.working_dir.is_dir() {
            let folder = program.working_dir.display();
            let message = format!("the working directory {folder} is not a folder");
            return Err(SpawnError::new(SpawnFault::Request, message));
        }
        let path = find_program(name, program)?;
        let text = |text: &str| CString::new(text);
        let variable = |(name, value): (&OsStr, &OsStr)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let image = (|| {
            let path = CString::new(path.as_os_str().as_bytes())?;
            let argv = program.argv.iter().map(|word| text(word)).collect::<Result<Vec<_>, _>>()?;
            let mut as_script = vec![text("sh")?, path.clone()];
            as_script.extend(argv.iter().skip(1).cloned());
            Ok(Self {
                env: program.env.iter().map(variable).collect::<Result<Vec<_>, _>>()?,
                working_dir: CString::new(program.working_dir.as_os_str().as_bytes())?,
                path,
                argv,
                as_script,
            })
        })();
        image.map_err(|_: NulError| {
            SpawnError::new(
                SpawnFault::Request,
                "the program's arguments or environment contain a NUL byte",
            )
        })
    }
}

/// The file to run: as given if it contains a slash, otherwise the first in `PATH`.
fn find_program(name: &str, program: &Program) -> Result<PathBuf, SpawnError> {
    let runnable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let request = |message: String| Err(SpawnError::new(SpawnFault::Request, message));
    if name.contains('/') {
        let path = program.working_dir.join(name);
        return match (path.exists(), runnable(&path)) {
            (_, true) => Ok(path),
            (true, false) => request(format!("{} cannot be executed", path.display())),
            (false, _) => request(format!("there is no program {}", path.display())),
        };
    }
    let default = OsStr::new("/usr/local/bin:/usr/bin:/bin");
    let folders = std::env::split_paths(program.env.get("PATH").unwrap_or(default));
    let mut files = folders.map(|folder| program.working_dir.join(folder).join(name));
    match files.find(|path| runnable(path)) {
        Some(path) => Ok(path),
        None => request(format!("there is no program `{name}` in PATH")),
    }
}

/// Waits until the program runs, or returns why it does not.
fn wait_for_exec(report: OwnedFd, image: &ExecImage) -> Result<(), SpawnError> {
    let timeout = Timespec { tv_sec: EXEC_TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
    let mut watched = [PollFd::new(&report, PollFlags::IN)];
    if poll(&mut watched, Some(&timeout)).is_ok_and(|ready| ready == 0) {
        return Ok(());
    }
    let mut words = [0u8; 8];
    let Ok(()) = File::from(report).read_exact(&mut words) else { return Ok(()) };
    let word = |n: usize| i32::from_ne_bytes([words[n], words[n + 1], words[n + 2], words[n + 3]]);
    let (stage, errno) = (word(0), Errno::from_raw_os_error(word(4)));
    let path = image.path.to_string_lossy();
    Err(match stage {
        stage if stage == SpawnStage::Directory as i32 => {
            let folder = image.working_dir.to_string_lossy();
            SpawnError::new(SpawnFault::Request, format!("cannot enter {folder}: {errno}"))
        }
        stage if stage == SpawnStage::Exec as i32 => {
            // The file existed before; if it is missing now, its interpreter is missing.
            let why = match errno {
                Errno::NOENT => "its interpreter does not exist".to_owned(),
                errno => errno.to_string(),
            };
            SpawnError::new(SpawnFault::Request, format!("cannot run {path}: {why}"))
        }
        stage if stage == SpawnStage::Terminal as i32 => {
            SpawnError::system("take a terminal", errno)
        }
        _ => SpawnError::system("start a process", errno),
    })
}

/// The child of the keeper: becomes the init, starts the program, watches it, and exits.
fn init_main(image: &ExecImage, descriptors: InitDescriptors) -> ! {
    let _ = rustix::process::setsid();
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    set_name(c"patterm-init");
    let child_signal = block_child_signal();
    // SAFETY: single-threaded, as in `spawn`.
    let program = match unsafe { libc::fork() } {
        -1 => {
            report_failure(&descriptors.report, SpawnStage::Fork, last_errno());
            exit_now(1);
        }
        0 => exec(image, &descriptors),
        program => program,
    };
    let InitDescriptors { control, status, report, stdio } = descriptors;
    drop((report, stdio));
    let keep = [control.as_raw_fd(), status.as_raw_fd(), child_signal.as_raw_fd()];
    close_all_but(&keep);
    if let Some(program) = Pid::from_raw(program) {
        Init::new(program, control, status, child_signal).run();
    }
    exit_now(0);
}

/// The program's own process, up to exec.
fn exec(image: &ExecImage, descriptors: &InitDescriptors) -> ! {
    let fail = |stage: SpawnStage, errno: Errno| -> ! {
        report_failure(&descriptors.report, stage, errno);
        exit_now(127)
    };
    if let Err(errno) = rustix::process::setsid().and_then(|_| descriptors.stdio.take()) {
        fail(SpawnStage::Terminal, errno);
    }
    reset_signals();
    // Ours are marked already; this is for descriptors that the keeper itself inherited.
    let _ = crate::descriptors::close_on_exec_above_stderr();
    crate::descriptors::restore_limit();
    if let Err(errno) = rustix::process::chdir(image.working_dir.as_c_str()) {
        fail(SpawnStage::Directory, errno);
    }
    let mut errno = execve(&image.path, &image.argv, &image.env);
    if errno == Errno::NOEXEC {
        errno = execve(c"/bin/sh", &image.as_script, &image.env);
    }
    fail(SpawnStage::Exec, errno)
}

/// Returns only if it failed.
fn execve(path: &std::ffi::CStr, argv: &[CString], env: &[CString]) -> Errno {
    let pointers = |list: &[CString]| {
        let mut pointers: Vec<_> = list.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        pointers
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: path is a C string, and both lists contain pointers to C strings that outlive the
    // call and end with a null pointer.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last_errno()
}

/// Makes SIGCHLD readable, and ignores the signals that a terminal or a person may send to the
/// keeper's process group.
fn block_child_signal() -> OwnedFd {
    for signal in
        [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE, libc::SIGTSTP]
    {
        // SAFETY: SIG_IGN is a valid disposition, and nothing in this process relies on the
        // handlers that it replaces.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: the set is initialised by sigemptyset before it is used, and lives on the stack
    // through all three calls; signalfd returns a new descriptor that nothing else owns.
    let descriptor = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if descriptor < 0 {
        exit_now(1);
    }
    // SAFETY: a new descriptor, see above.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Resets signals as a shell does: none blocked, none ignored.
fn reset_signals() {
    for signal in 1..=31 {
        // SAFETY: SIG_DFL is valid for every signal; for SIGKILL and SIGSTOP the call fails and
        // changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised before it is used and outlives the call.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Closes every descriptor above standard error except these: this process must not hold the
/// keeper's other panes open.
fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<libc::c_uint> = keep.iter().map(|fd| fd.cast_unsigned()).collect();
    keep.sort_unstable();
    let mut from = 3;
    for fd in keep {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = fd + 1;
    }
    close_range(from, libc::c_uint::MAX);
}

fn close_range(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: called only in the newly forked init, where every owner of a descriptor in the range
    // is a copy that is never used again: the process exits without running destructors.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}

fn set_name(name: &std::ffi::CStr) {
    // SAFETY: PR_SET_NAME reads a C string of at most 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

fn report_failure(report: &OwnedFd, stage: SpawnStage, errno: Errno) {
    let mut words = [0; 8];
    words[..4].copy_from_slice(&(stage as i32).to_ne_bytes());
    words[4..].copy_from_slice(&errno.raw_os_error().to_ne_bytes());
    let _ = rustix::io::write(report, &words);
}

/// Exits a forked process without running its parent's destructors.
fn exit_now(code: i32) -> ! {
    // SAFETY: _exit runs no destructors and no exit handlers.
    unsafe { libc::_exit(code) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn io_failed(what: &'static str, error: &std::io::Error) -> SpawnError {
    SpawnError::system(what, Errno::from_io_error(error).unwrap_or(Errno::IO))
}
