//! The dashboard's data: what all processes use, how that changed while it was open, and how the rows are sorted.

use std::collections::{BTreeMap, VecDeque};

use patterm_wire::usage::{ProcessUsage, UsageResult};

/// Measurements that are kept for each process, for its sparklines: as many as the widest one shows.
pub(crate) const SAMPLES: usize = 20;

/// Ports are looked up with every fifth measurement only: that reads every descriptor of every process.
const PORTS_EVERY: u32 = 5;

/// A column of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Column {
    #[default]
    Number,
    Name,
    State,
    Cpu,
    Memory,
    Age,
    Restarts,
    Ports,
    LastLine,
}

impl Column {
    /// All columns, from left to right.
    pub(crate) const ALL: [Self; 9] = [
        Self::Number,
        Self::Name,
        Self::State,
        Self::Cpu,
        Self::Memory,
        Self::Age,
        Self::Restarts,
        Self::Ports,
        Self::LastLine,
    ];

    /// Its heading.
    pub(crate) fn heading(self, is_wide: bool) -> &'static str {
        match self {
            Self::Number => "#",
            Self::Name => "name",
            Self::State => "state",
            Self::Cpu => "CPU%",
            Self::Memory if is_wide => "memory",
            Self::Memory => "mem",
            Self::Age => "age",
            Self::Restarts if is_wide => "restarts",
            Self::Restarts => "rst",
            Self::Ports => "ports",
            Self::LastLine => "last line",
        }
    }

    /// Whether the largest values come first when the column is chosen: people look for what uses the most.
    fn begins_with_largest(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory | Self::Restarts)
    }
}

/// The measurements of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProcessSamples {
    /// The newest measurement, and when it was taken.
    pub(crate) last: ProcessUsage,
    at_ms: u64,
    /// Percent of one CPU, the newest last.
    pub(crate) cpu: VecDeque<u32>,
    /// Bytes, the newest last.
    pub(crate) memory: VecDeque<u64>,
}

impl ProcessSamples {
    /// The CPU usage since the previous measurement, in percent of one CPU.
    pub(crate) fn cpu_now(&self) -> Option<u32> {
        self.last.cpu_ms.and(self.cpu.back().copied())
    }

    fn add(&mut self, at_ms: u64, mut new: ProcessUsage) {
        let is_same_run = self.last.started_at == new.started_at;
        if let (Some(before), Some(now), true) = (self.last.cpu_ms, new.cpu_ms, is_same_run) {
            let time = at_ms.saturating_sub(self.at_ms).max(1);
            // A process that ended without being waited for takes its time with it.
            let percent = now.saturating_sub(before) * 100 / time;
            push(&mut self.cpu, u32::try_from(percent).unwrap_or(u32::MAX));
        }
        if let Some(bytes) = new.memory_bytes {
            push(&mut self.memory, bytes);
        }
        if new.ports.is_none() && is_same_run {
            new.ports = self.last.ports.take();
        }
        (self.last, self.at_ms) = (new, at_ms);
    }
}

fn push<T>(samples: &mut VecDeque<T>, sample: T) {
    if samples.len() == SAMPLES {
        samples.pop_front();
    }
    samples.push_back(sample);
}

/// What the dashboard shows.
#[derive(Debug, Default)]
pub(crate) struct Dashboard {
    /// The column that the rows are sorted by.
    pub(crate) sort: Column,
    /// The largest first.
    pub(crate) descending: bool,
    /// The id of the chosen process.
    pub(crate) chosen: Option<String>,
    /// The measurements of each process, by its id.
    pub(crate) samples: BTreeMap<String, ProcessSamples>,
    /// Why there are no measurements.
    pub(crate) problem: Option<String>,
    /// How often they were requested.
    requests: u32,
}

impl Dashboard {
    /// Begins again with new measurements; the order stays.
    pub(crate) fn open(&mut self, chosen: Option<String>) {
        let (sort, descending) = (self.sort, self.descending);
        *self = Self { sort, descending, chosen, ..Self::default() };
    }

    /// Whether the next request is for ports, too.
    pub(crate) fn next_request(&mut self) -> bool {
        let wants_ports = self.requests.is_multiple_of(PORTS_EVERY);
        self.requests = self.requests.wrapping_add(1);
        wants_ports
    }

    /// Adds a measurement; processes that are gone are forgotten.
    pub(crate) fn add(&mut self, result: UsageResult) {
        let mut before = std::mem::take(&mut self.samples);
        for process in result.processes {
            let id = process.id.clone();
            let mut samples = before.remove(&id).unwrap_or_default();
            samples.add(result.at_ms, process);
            self.samples.insert(id, samples);
        }
        self.problem = None;
    }

    /// Sorts by a column; the same column again reverses the order.
    pub(crate) fn sort_by(&mut self, column: Column) {
        if self.sort == column {
            self.descending = !self.descending;
        } else {
            (self.sort, self.descending) = (column, column.begins_with_largest());
        }
    }

    /// Sorts by the column that is this far to the right of the present one.
    pub(crate) fn sort_beside(&mut self, by: isize) {
        let count = Column::ALL.len();
        let at = Column::ALL.iter().position(|column| *column == self.sort).unwrap_or(0);
        self.sort_by(Column::ALL[(at + count).saturating_add_signed(by) % count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(id: &str, cpu_ms: u64, memory: u64) -> ProcessUsage {
        let (cpu_ms, memory_bytes) = (Some(cpu_ms), Some(memory));
        let id = id.to_owned();
        ProcessUsage { id, cpu_ms, memory_bytes, started_at: Some(1), ..ProcessUsage::default() }
    }

    fn add(dashboard: &mut Dashboard, at_ms: u64, processes: &[ProcessUsage]) {
        dashboard.add(UsageResult { at_ms, processes: processes.to_vec() });
    }

    #[test]
    fn cpu_usage_is_the_time_used_between_two_measurements() {
        let mut dashboard = Dashboard::default();
        add(&mut dashboard, 1_000, &[usage("p1", 5_000, 10)]);
        assert_eq!(dashboard.samples["p1"].cpu_now(), None, "one measurement is not enough");
        add(&mut dashboard, 2_000, &[usage("p1", 5_500, 20)]);
        assert_eq!(dashboard.samples["p1"].cpu_now(), Some(50));
        add(&mut dashboard, 4_000, &[usage("p1", 5_400, 30)]);
        assert_eq!(dashboard.samples["p1"].cpu_now(), Some(0), "it never becomes negative");
        let restarted = ProcessUsage { started_at: Some(2), ..usage("p1", 9_000, 30) };
        add(&mut dashboard, 5_000, &[restarted]);
        assert_eq!(dashboard.samples["p1"].cpu, [50, 0], "another run is not compared");
        assert_eq!(dashboard.samples["p1"].memory, [10, 20, 30, 30]);
    }

    #[test]
    fn the_history_is_bounded_and_closed_processes_are_forgotten() {
        let mut dashboard = Dashboard::default();
        for at in 0..=100 {
            add(&mut dashboard, at * 1000, &[usage("p1", at, at), usage("p2", 0, 0)]);
        }
        let samples = &dashboard.samples["p1"];
        assert_eq!((samples.cpu.len(), samples.memory.len()), (SAMPLES, SAMPLES));
        add(&mut dashboard, 101_000, &[usage("p2", 0, 0)]);
        assert_eq!(dashboard.samples.keys().collect::<Vec<_>>(), ["p2"]);
    }

    #[test]
    fn ports_are_requested_sometimes_and_kept_in_between() {
        let mut dashboard = Dashboard::default();
        let asked: Vec<bool> = (0..7).map(|_| dashboard.next_request()).collect();
        assert_eq!(asked, [true, false, false, false, false, true, false]);
        let with = |ports| ProcessUsage { ports, ..usage("p1", 0, 0) };
        add(&mut dashboard, 0, &[with(Some(vec![3000]))]);
        add(&mut dashboard, 1_000, &[with(None)]);
        assert_eq!(dashboard.samples["p1"].last.ports, Some(vec![3000]));
        add(&mut dashboard, 2_000, &[with(Some(Vec::new()))]);
        assert_eq!(dashboard.samples["p1"].last.ports, Some(Vec::new()));
    }

    #[test]
    fn columns_with_amounts_begin_with_the_largest() {
        let mut dashboard = Dashboard::default();
        dashboard.sort_by(Column::Cpu);
        assert_eq!((dashboard.sort, dashboard.descending), (Column::Cpu, true));
        dashboard.sort_by(Column::Cpu);
        assert!(!dashboard.descending, "the same again reverses");
        dashboard.sort_beside(-1);
        assert_eq!((dashboard.sort, dashboard.descending), (Column::State, false));
        dashboard.sort_by(Column::Number);
        dashboard.sort_beside(-1);
        assert_eq!(dashboard.sort, Column::LastLine, "it goes round");
    }
}
