//! All projects of this user: what is known about each, and the rows that show it.

use patterm_wire::follow::{DialogInfo, ProcessInfo, ProjectSnapshot};
use patterm_wire::overview::listed;
use patterm_wire::requests::ServerEntry;

/// What is known about a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProjectState {
    /// Its server has not sent anything yet.
    Connecting,
    /// Its newest state.
    Live(Box<ProjectSnapshot>),
    /// Its server does not answer; the text says what to do.
    Hung(String),
}

/// A project with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverviewProject {
    /// Its server.
    pub(crate) server: ServerEntry,
    pub(crate) state: ProjectState,
}

/// A project in the overview, or a process of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The key of the project.
    pub(crate) key: String,
    /// The process; `None` for the project itself.
    pub(crate) process: Option<String>,
}

/// What happened to the servers of the overview.
#[derive(Debug)]
pub(crate) enum OverviewEvent {
    /// These are the servers now.
    Servers(Vec<ServerEntry>),
    /// The state of a project, by its key.
    Snapshot(String, Box<ProjectSnapshot>),
    /// A server does not answer; what to do about it.
    Hung(String, String),
}

/// A dialog that the user is about to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerPanel {
    /// The key of the project; `None` for the project that the TUI shows.
    pub(crate) project: Option<String>,
    pub(crate) process: String,
    pub(crate) name: String,
    /// The dialog as it is shown.
    pub(crate) dialog: DialogInfo,
    /// The chosen option.
    pub(crate) chosen: usize,
    /// The list from which it was opened: its chosen item and its filter.
    pub(crate) list: Option<(usize, String)>,
}

/// All projects, while the user looks at them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overview {
    pub(crate) projects: Vec<OverviewProject>,
    /// The servers are known.
    is_listed: bool,
}

/// A row of the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverviewRow<'a> {
    Project(&'a OverviewProject),
    /// A process and its depth.
    Process(&'a OverviewProject, usize, &'a ProcessInfo),
    /// What the process above asks.
    Question(&'a DialogInfo),
    /// What to do about the server of the project above.
    Hung(&'a str),
}

impl OverviewProject {
    /// The name of its folder.
    pub(crate) fn name(&self) -> String {
        let folder = &self.server.project;
        folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
    }
}

impl OverviewRow<'_> {
    /// The place that it shows, unless it belongs to the row above.
    pub(crate) fn place(&self) -> Option<Place> {
        let (project, process) = match self {
            Self::Project(project) => (project, None),
            Self::Process(project, _, process) => (project, Some(process.id.clone())),
            Self::Question(_) | Self::Hung(_) => return None,
        };
        Some(Place { key: project.server.key.clone(), process })
    }
}

impl Overview {
    pub(crate) fn project(&self, key: &str) -> Option<&OverviewProject> {
        self.projects.iter().find(|project| project.server.key == key)
    }

    /// A process of a project.
    pub(crate) fn process(&self, place: &Place) -> Option<&ProcessInfo> {
        let ProjectState::Live(snapshot) = &self.project(&place.key)?.state else { return None };
        let id = place.process.as_ref()?;
        snapshot.processes.iter().find(|process| process.id == *id)
    }

    /// The processes of other projects that wait for a person.
    pub(crate) fn waiting_outside(&self, here: &str) -> Vec<(&OverviewProject, &ProcessInfo)> {
        let others = self.projects.iter().filter(|project| project.server.key != here);
        let waiting = others.flat_map(|project| {
            let all = match &project.state {
                ProjectState::Live(snapshot) => snapshot.processes.as_slice(),
                ProjectState::Connecting | ProjectState::Hung(_) => &[],
            };
            all.iter()
                .filter(|process| process.needs_person())
                .map(move |process| (project, process))
        });
        waiting.collect()
    }

    /// Whether every other project has sent its state, or is known not to.
    pub(crate) fn is_complete(&self, here: &str) -> bool {
        let is_known = |project: &OverviewProject| {
            project.server.key == here || project.state != ProjectState::Connecting
        };
        self.is_listed && self.projects.iter().all(is_known)
    }

    /// Whether a server does not answer.
    pub(crate) fn has_hung(&self) -> bool {
        self.projects.iter().any(|project| matches!(project.state, ProjectState::Hung(_)))
    }

    /// Replaces the servers. What is known about those that are still there stays.
    pub(crate) fn set_servers(&mut self, servers: Vec<ServerEntry>) {
        self.is_listed = true;
        let mut before = std::mem::take(&mut self.projects);
        for server in servers {
            let same = |project: &OverviewProject| {
                project.server.key == server.key && project.server.pid == server.pid
            };
            let state = match before.iter().position(same) {
                Some(at) => before.swap_remove(at).state,
                None => ProjectState::Connecting,
            };
            self.projects.push(OverviewProject { server, state });
        }
    }

    /// Sets what is known about a project.
    pub(crate) fn set_state(&mut self, key: &str, state: ProjectState) {
        if let Some(project) = self.projects.iter_mut().find(|project| project.server.key == key) {
            project.state = state;
        }
    }

    /// The rows, project by project.
    pub(crate) fn rows(&self) -> Vec<OverviewRow<'_>> {
        let mut rows = Vec::new();
        for project in &self.projects {
            rows.push(OverviewRow::Project(project));
            let snapshot = match &project.state {
                ProjectState::Live(snapshot) => snapshot,
                ProjectState::Hung(advice) => {
                    rows.push(OverviewRow::Hung(advice));
                    continue;
                }
                ProjectState::Connecting => continue,
            };
            for (depth, process) in listed(&snapshot.processes) {
                rows.push(OverviewRow::Process(project, depth, process));
                rows.extend(process.dialog.as_ref().map(OverviewRow::Question));
            }
        }
        rows
    }

    /// The row of a place; if it is gone, that of its project or the first one.
    pub(crate) fn row_of(&self, place: &Place) -> usize {
        let rows = self.rows();
        let find =
            |wanted: &Place| rows.iter().position(|row| row.place().as_ref() == Some(wanted));
        let project = Place { key: place.key.clone(), process: None };
        find(place).or_else(|| find(&project)).unwrap_or(0)
    }
}
