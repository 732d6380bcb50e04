//! The tools: one file each, with its arguments, its answer, its texts and tests of its own logic. Tests that call
//! it are in `tests/it`. [`Registry::standard`] lists the tools; the files that it does not name are helpers.

mod close_process;
/// The example in CONTRIBUTING.md, compiled with the tests.
#[cfg(test)]
#[path = "../../../../docs/examples/count_lines.rs"]
mod contributing_example;
mod error;
mod error_kinds;
mod event_answer;
mod get_digest;
mod get_events;
mod get_process_output;
mod get_process_ports;
mod get_process_raw_output;
mod get_process_status;
mod get_project_status;
mod help;
mod idle_timer;
mod list_agents;
mod list_processes;
mod message_cancel;
mod message_status;
mod messages;
mod moment;
mod named;
mod next_run;
mod paging;
mod pattern;
mod process;
mod progress;
mod raw_search;
mod registry;
mod rename_process;
mod request_human_attention;
mod restart_process;
mod schema;
mod scratchpad;
mod scratchpad_append;
mod scratchpad_delete;
mod scratchpad_list;
mod scratchpad_read;
mod scratchpad_write;
mod search_output;
mod select_process;
mod send_input;
mod send_message;
mod signal;
mod signal_process;
mod spawn_agent;
mod spawn_process;
mod start_process;
mod stop_process;
mod timer;
mod timer_cancel;
mod timer_fire_on_exit;
mod timer_fire_when_idle_all;
mod timer_fire_when_idle_any;
mod timer_list;
mod timer_pause;
mod timer_resume;
mod timer_set;
mod timer_wait;
mod tool;
mod topics;
mod wait_for_agents;
mod wait_for_event;
mod wait_for_output;
mod wait_for_pattern;
mod whoami;

pub use error::{ErrorKind, ToolError};
pub(crate) use messages::{last_messages, message_source};
pub(crate) use moment::second_time;
pub(crate) use moment::{Moment, gone};
pub(crate) use named::named;
pub use pattern::check_pattern;
pub use process::check_label;
pub(crate) use process::{is_owner, no_output, not_owner, output_problem};
pub use progress::Progress;
pub use registry::Registry;
pub use send_input::check_key;
pub use signal::check_signal;
pub(crate) use timer::excerpt;
pub use tool::{Call, Effect, Loading, Tool};

impl Registry {
    /// Every tool of this version.
    pub fn standard() -> Self {
        Self::default()
            .with::<whoami::Whoami>()
            .with::<help::Help>()
            .with::<get_project_status::GetProjectStatus>()
            .with::<list_processes::ListProcesses>()
            .with::<get_process_status::GetProcessStatus>()
            .with::<list_agents::ListAgents>()
            .with::<spawn_agent::SpawnAgent>()
            .with::<spawn_process::SpawnProcess>()
            .with::<start_process::StartProcess>()
            .with::<restart_process::RestartProcess>()
            .with::<stop_process::StopProcess>()
            .with::<signal_process::SignalProcess>()
            .with::<close_process::CloseProcess>()
            .with::<rename_process::RenameProcess>()
            .with::<select_process::SelectProcess>()
            .with::<get_process_output::GetProcessOutput>()
            .with::<get_process_raw_output::GetProcessRawOutput>()
            .with::<search_output::SearchOutput>()
            .with::<wait_for_pattern::WaitForPattern>()
            .with::<wait_for_output::WaitForOutput>()
            .with::<wait_for_agents::WaitForAgents>()
            .with::<get_digest::GetDigest>()
            .with::<get_events::GetEvents>()
            .with::<wait_for_event::WaitForEvent>()
            .with::<get_process_ports::GetProcessPorts>()
            .with::<send_input::SendInput>()
            .with::<send_message::SendMessage>()
            .with::<message_status::MessageStatus>()
            .with::<message_cancel::MessageCancel>()
            .with::<request_human_attention::RequestHumanAttention>()
            .with::<timer_set::TimerSet>()
            .with::<timer_wait::TimerWait>()
            .with::<timer_fire_when_idle_any::TimerFireWhenIdleAny>()
            .with::<timer_fire_when_idle_all::TimerFireWhenIdleAll>()
            .with::<timer_fire_on_exit::TimerFireOnExit>()
            .with::<timer_cancel::TimerCancel>()
            .with::<timer_pause::TimerPause>()
            .with::<timer_resume::TimerResume>()
            .with::<timer_list::TimerList>()
            .with::<scratchpad_list::ScratchpadList>()
            .with::<scratchpad_read::ScratchpadRead>()
            .with::<scratchpad_write::ScratchpadWrite>()
            .with::<scratchpad_append::ScratchpadAppend>()
            .with::<scratchpad_delete::ScratchpadDelete>()
    }
}

#[cfg(test)]
mod tests {
    use patterm_keeper::log::Log;
    use patterm_panes::Offset;
    use patterm_panes::data_plane::ProcessRun;
    use patterm_panes::process::{ProcessId, RunNumber};
    use patterm_screen::{Screen, Size};

    use super::contributing_example;

    #[test]
    fn the_example_tool_counts_blank_wrapped_and_very_long_lines_once() {
        let lines = |text: &str| {
            let dir = tempfile::tempdir().unwrap();
            let log = Log::open(dir.path(), 1 << 20).unwrap();
            let mut screen = Screen::new(Size::DEFAULT);
            screen.feed(text.as_bytes());
            let (id, number) = (ProcessId::new(1), RunNumber::FIRST);
            let run = ProcessRun::new(id, number, None, log.reader(), screen, Offset::START);
            contributing_example::count(&run)
        };
        assert_eq!(lines(""), 0);
        assert_eq!(lines("one\r\n\r\nthree"), 3);
        assert_eq!(lines(&"scrolled away\r\n".repeat(500)), 500);
        for length in [100, 400_000] {
            assert_eq!(lines(&format!("{}\r\nend\r\n", "x".repeat(length))), 2, "{length}");
        }
    }
}
