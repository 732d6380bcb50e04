//! Which git command made a commit. git writes a trace of each of its commands into a folder; the folder belongs to one
//! run of a pane, so a trace shows who ran the command. The repository shows which commits were written while it ran.
//! Neither is trusted: what is read is bounded, and nothing that a repository configures is run.

mod made;
mod repository;
mod safe_git;
mod trace;
mod trace_folder;
mod users_target;

pub use made::{CheckedOut, Made, branch_by, commits_by, own_change};
pub use repository::{Changes, ReflogEntry, Repository};
pub use safe_git::Git;
pub use trace::{TraceFault, TracedCommand};
pub use trace_folder::{Drained, MOST_FILES, Taken, TraceFolder};
pub use users_target::{TARGET_VARIABLE, UsersTargets};
