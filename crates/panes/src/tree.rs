//! A process and its descendants, as the kernel reports them: resource usage, ports and ancestry.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

/// The resource usage of a tree of processes.
#[derive(Debug, Default, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Usage {
    /// How many processes there are.
    pub processes: usize,
    /// Seconds of CPU time they have used.
    pub cpu_seconds: f64,
    /// Bytes of memory they have.
    pub memory_bytes: u64,
}

/// Clock ticks per second in `/proc`; the same on every Linux.
const TICKS: f64 = 100.0;

const PAGE_BYTES: u64 = 4096;

/// The resource usage of everything below an init.
pub fn usage(init: i32) -> Usage {
    let mut usage = Usage::default();
    for pid in below(init) {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The name may contain anything; the fields after it begin with the state.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |n: usize| fields.get(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        usage.processes += 1;
        // With the children that it waited for: otherwise the time of short programs would be lost with them.
        let ticks: u64 = (11..=14).map(field).sum();
        usage.cpu_seconds += ticks as f64 / TICKS;
        usage.memory_bytes += field(21) * PAGE_BYTES;
    }
    usage
}

/// The TCP ports on which processes below an init listen.
pub fn listening(init: i32) -> BTreeSet<u16> {
    ListeningSockets::read().of(init)
}

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListeningSocket {
    port: u16,
    address: IpAddr,
    inode: u64,
}

/// All listening TCP sockets, to look up those of several processes.
#[derive(Debug, PartialEq, Eq)]
pub struct ListeningSockets(BTreeSet<ListeningSocket>);

impl ListeningSockets {
    /// Reads the kernel's tables.
    pub fn read() -> Self {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
        let tables = tables.iter().filter_map(|table| fs::read_to_string(table).ok());
        Self(tables.flat_map(|table| listening_in(&table)).collect())
    }

    /// The ports on which processes below an init listen.
    pub fn of(&self, init: i32) -> BTreeSet<u16> {
        let inodes = sockets_below(init);
        let own = self.0.iter().filter(|socket| inodes.contains(&socket.inode));
        own.map(|socket| socket.port).collect()
    }

    /// The inodes of the sockets that listen on a port.
    pub fn at_port(&self, port: u16) -> BTreeSet<u64> {
        self.inodes(|socket| socket.port == port)
    }

    /// The inodes of the sockets that accept connections to an address of this machine: those with just this address,
    /// or else those with none.
    pub fn accepting(&self, at: SocketAddr) -> BTreeSet<u64> {
        let wanted = at.ip().to_canonical();
        let any = match wanted {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let addresses = [wanted, any, IpAddr::V6(Ipv6Addr::UNSPECIFIED)].into_iter();
        let with =
            |address| self.inodes(|socket| socket.port == at.port() && socket.address == address);
        addresses.map(with).find(|found| !found.is_empty()).unwrap_or_default()
    }

    fn inodes(&self, wanted: impl Fn(&ListeningSocket) -> bool) -> BTreeSet<u64> {
        self.0.iter().filter(|socket| wanted(socket)).map(|socket| socket.inode).collect()
    }
}

/// A process that has a socket, with its name. `None` if it belongs to another user.
pub fn holder(inode: u64) -> Option<(i32, String)> {
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let pid = pids.find(|pid| sockets_of(*pid).any(|socket| socket == inode))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some((pid, name.trim_end().to_owned()))
}

/// The inodes of all sockets of processes below an init.
pub fn sockets_below(init: i32) -> BTreeSet<u64> {
    below(init).into_iter().flat_map(sockets_of).collect()
}

/// The inodes of the sockets of a process.
fn sockets_of(pid: i32) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

/// The listening sockets of a kernel table.
fn listening_in(table: &str) -> Vec<ListeningSocket> {
    const LISTEN: &str = "0A";
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let inode = fields.get(9)?.parse().ok()?;
        let address = address_of(address)?;
        (*fields.get(3)? == LISTEN).then_some(ListeningSocket { port, address, inode })
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// An address as the kernel prints it: words of four bytes, each in the byte order of the machine.
fn address_of(digits: &str) -> Option<IpAddr> {
    let word = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let words = digits.as_bytes().chunks(8).map(word).collect::<Option<Vec<_>>>()?;
    let bytes = words.concat();
    let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from);
    Some(v4.or_else(|_| v6()).ok()?.to_canonical())
}

/// The most ancestors of a process: more than shells ever nest, and few enough to look up whenever a client
/// connects.
pub const LONGEST_LINE: usize = 1_000;

/// How often the ancestry is read until two reads in a row agree. When a parent ends, its children get another parent
/// once; only a program that does this on purpose needs more tries.
const LINE_TRIES: usize = 10;

/// A process and its ancestors, nearest first, up to the first process that is visible. `None` if the process is
/// gone, or if its ancestry keeps changing or is too long: an incomplete line must not be used, since the missing
/// part decides in which pane the process runs.
pub fn line_of(pid: i32) -> Option<Vec<i32>> {
    let mut before = follow_line(pid);
    for _ in 0..LINE_TRIES {
        let again = follow_line(pid);
        if again.is_some() && again == before {
            return again;
        }
        before = again;
    }
    None
}

/// Reads the ancestry of a process once; `None` if a process in it ended meanwhile.
fn follow_line(pid: i32) -> Option<Vec<i32>> {
    let mut line = Vec::new();
    let mut next = pid;
    while next > 0 {
        // A pid may have been reused in between, which can look like a cycle.
        if line.len() == LONGEST_LINE || line.contains(&next) {
            return None;
        }
        next = match parent_of(next) {
            Some(parent) => {
                line.push(next);
                parent
            }
            // If /proc hides processes of other users, the line ends with the last visible one.
            None if !line.is_empty() && is_hidden(next) => break,
            None => return None,
        };
    }
    (!line.is_empty()).then_some(line)
}

/// The parent of a process; 0 for the first process.
pub fn parent_of(pid: i32) -> Option<i32> {
    stat_field(pid, 1)?.parse().ok()
}

/// The controlling terminal of a process, by its major and minor number.
pub fn terminal(pid: i32) -> Option<(u32, u32)> {
    let number: i32 = stat_field(pid, 4)?.parse().ok()?;
    let number = number.cast_unsigned();
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    (number != 0).then_some(((number >> 8) & 0xfff, minor))
}

/// When a process started, in milliseconds since 1970.
pub fn started_at(pid: i32) -> Option<u64> {
    let ticks: f64 = stat_field(pid, 19)?.parse().ok()?;
    let kernel = fs::read_to_string("/proc/stat").ok()?;
    let boot = kernel.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot: u64 = boot.trim().parse().ok()?;
    Some(boot * 1000 + (ticks * 1000.0 / TICKS) as u64)
}

/// The working folder of a process.
pub fn working_dir(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn stat_field(pid: i32, n: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(n).map(str::to_owned)
}

/// Whether a process exists although `/proc` does not show it: it belongs to another user.
fn is_hidden(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::PERM))
}

/// All descendants of a process.
pub fn below(init: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut next = vec![init];
    while let Some(pid) = next.pop() {
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// The children of a process.
pub fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = |list: String| list.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    lists.flat_map(numbers as fn(String) -> Vec<i32>).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ancestry_of_a_process_is_complete_or_not_returned() {
        let own = i32::try_from(std::process::id()).unwrap();
        let line = line_of(own).unwrap();
        assert_eq!(line[0], own);
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        assert_eq!(line[1], parent);
        assert_eq!(parent_of(*line.last().unwrap()), Some(0), "{line:?}");
        let now = patterm_store::clock::Clock::system().wall_ms();
        assert!(started_at(own).unwrap() <= now + 1000, "the kernel reports whole seconds");
        assert!(started_at(line[1]).unwrap() <= started_at(own).unwrap());
        // No process has the highest possible id.
        assert_eq!(line_of(i32::MAX), None);
        assert_eq!(line_of(0), None);
    }

    #[test]
    fn listening_rows_of_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0\n\
            \x20  1: 0100007F:A0B2 0100007F:1538 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0\n\
            \x20  2: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0\n";
        let sockets = ListeningSockets(listening_in(table).into_iter().collect());
        let inodes = |at: &str| Vec::from_iter(sockets.accepting(at.parse().unwrap()));
        assert_eq!(inodes("127.0.0.1:5432"), [4242]);
        assert_eq!(inodes("127.0.0.2:5432"), [0; 0]);
        assert_eq!(
            inodes("127.0.0.1:3000"),
            [77],
            "a socket without an address accepts both versions"
        );
        assert_eq!(inodes("[::1]:3000"), [77]);
        assert_eq!(sockets.at_port(5432), BTreeSet::from([4242]));
    }

    #[test]
    fn an_own_socket_is_found_with_its_address_and_holder() {
        for bind in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(listener) = std::net::TcpListener::bind(bind) else { continue };
            let mut at = listener.local_addr().unwrap();
            if at.ip().is_unspecified() {
                at.set_ip(Ipv4Addr::LOCALHOST.into());
            }
            let found = ListeningSockets::read().accepting(at);
            assert_eq!(found.len(), 1, "{bind}");
            let (pid, _) = holder(*found.first().unwrap()).unwrap();
            assert_eq!(pid.cast_unsigned(), std::process::id());
        }
    }
}
