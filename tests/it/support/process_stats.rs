//! What the kernel reports about a process: its memory, descriptors, threads and children.

use std::path::PathBuf;

/// The name of a server's threads for blocking work, and how many it may have.
const POOL_THREAD: &str = "patterm-pool";
const POOL_THREADS: usize = 64;

/// A process to measure.
#[derive(Debug, Clone)]
pub(crate) struct ProcessStats {
    folder: PathBuf,
}

impl ProcessStats {
    pub(crate) fn of(pid: u32) -> Self {
        Self { folder: format!("/proc/{pid}").into() }
    }

    /// This process. (nextest runs each test in its own process.)
    pub(crate) fn own() -> Self {
        Self::of(std::process::id())
    }

    /// Bytes of memory in use.
    pub(crate) fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The peak since the start or [`ProcessStats::forget_peak`].
    pub(crate) fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Resets the peak to the current value.
    pub(crate) fn forget_peak(&self) {
        std::fs::write(self.folder.join("clear_refs"), "5").unwrap();
    }

    /// Bytes of anonymous memory: without mapped files, which the kernel may drop at any time.
    pub(crate) fn anonymous(&self) -> u64 {
        self.status("RssAnon:")
    }

    /// The targets of all open descriptors.
    pub(super) fn open_files(&self) -> Vec<String> {
        let descriptors = std::fs::read_dir(self.folder.join("fd")).unwrap().flatten();
        let target = |path: PathBuf| std::fs::read_link(path).ok();
        let targets = descriptors.filter_map(|descriptor| target(descriptor.path()));
        let mut targets: Vec<_> = targets.map(|path| path.display().to_string()).collect();
        targets.sort();
        targets
    }

    /// The names of the threads, without those of the pool for blocking work: a server keeps them, and how many it
    /// has depends on what happened at the same time.
    pub(super) fn threads(&self) -> Vec<String> {
        let name = |task: PathBuf| std::fs::read_to_string(task.join("comm")).ok();
        let names = self.tasks().filter_map(name).map(|name| name.trim().to_owned());
        let (pool, mut others): (Vec<_>, Vec<_>) = names.partition(|name| name == POOL_THREAD);
        assert!(pool.len() <= POOL_THREADS, "{} threads in the pool", pool.len());
        others.sort();
        others
    }

    /// The children of all threads, including zombies.
    pub(super) fn children(&self) -> Vec<u32> {
        let lists =
            self.tasks().filter_map(|task| std::fs::read_to_string(task.join("children")).ok());
        let parse =
            |list: String| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        lists.flat_map(|list| -> Vec<u32> { parse(list) }).collect()
    }

    fn tasks(&self) -> impl Iterator<Item = PathBuf> {
        std::fs::read_dir(self.folder.join("task")).unwrap().flatten().map(|task| task.path())
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(self.folder.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes << 10
    }
}
