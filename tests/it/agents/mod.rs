//! Real agents' CLIs in patterm's panes, with a model that does what the prompt tells it: what
//! patterm says of them and to them is held against what the model saw.

mod bad_input;
mod bench;
mod cli;
mod dialog_races;
mod endings;
mod evidence;
pub(crate) mod fake;
mod first_letters;
mod first_request;
mod left_standing;
mod limits;
mod menus;
mod mock;
mod odd_messages;
mod own_queue;
mod quoted;
mod recording;
mod report;
mod restart;
mod seen;
mod shapes;
mod six;
mod starts;
mod team;
mod tool_search;
mod truth;

/// The table of truth for one CLI.
macro_rules! truth_of {
    ($module:ident, $cli:expr) => {
        mod $module {
            use super::{
                cli, dialog_races, first_letters, first_request, limits, menus, odd_messages,
                own_queue, quoted, restart, shapes, starts, truth,
            };

            #[test]
            fn messages_of_all_sizes_arrive_whole_and_once() {
                truth::messages($cli);
            }

            #[test]
            fn odd_messages_arrive_as_they_were_sent() {
                odd_messages::messages($cli);
            }

            #[test]
            fn a_message_around_a_permission_dialog_is_neither_lost_nor_doubled() {
                dialog_races::races($cli);
            }

            #[test]
            fn a_message_right_after_the_start_arrives_once() {
                starts::messages($cli);
            }

            #[test]
            fn a_persons_first_letters_do_not_merge_with_a_message() {
                first_letters::races($cli);
            }

            #[test]
            fn messages_while_it_works_and_starts_arrive_once_and_in_order() {
                truth::while_working($cli);
            }

            #[test]
            fn a_message_in_a_turn_that_is_cut_short_is_not_called_delivered_unless_it_arrived() {
                own_queue::cut_short($cli);
            }

            #[test]
            fn nothing_is_typed_into_a_permission_dialog() {
                truth::permission($cli);
            }

            #[test]
            fn a_half_typed_draft_is_untouched() {
                truth::draft($cli);
            }

            #[test]
            fn a_restart_before_the_first_turn_gives_the_instructions_again() {
                restart::before_the_first_turn($cli);
            }

            #[test]
            fn first_prompts_arrive_every_time() {
                truth::first_prompts($cli);
            }

            #[test]
            fn first_prompts_may_say_anything() {
                truth::odd_first_prompts($cli);
            }

            #[test]
            fn its_first_turn_has_the_tools() {
                truth::tools_at_once($cli);
            }

            #[test]
            fn what_its_model_is_given_of_our_tools() {
                first_request::tools($cli);
            }

            #[test]
            fn it_calls_a_shared_servers_tool() {
                truth::shared_tool($cli);
            }

            #[test]
            fn idle_timers_do_not_fire_while_it_works() {
                shapes::idle_timers($cli);
            }

            #[test]
            fn screens_that_are_only_quoted_say_nothing_of_its_state() {
                quoted::screens($cli);
            }

            #[test]
            fn it_is_limited_at_a_usage_limit_until_its_next_turn() {
                limits::usage($cli);
            }

            #[test]
            fn it_is_blocked_while_a_menu_or_another_mode_is_open() {
                menus::over_the_prompt($cli);
            }

            #[test]
            fn it_rests_after_escape_and_after_errors() {
                truth::ends_of_turns($cli);
            }

            #[test]
            fn a_restart_goes_on_with_the_conversation_whatever_ended_it() {
                restart::goes_on($cli);
            }

            #[test]
            fn a_restart_takes_up_the_conversation_that_the_person_turned_to() {
                restart::turns_to_another($cli);
            }

            #[test]
            fn the_server_is_killed_while_messages_wait_and_while_one_is_put_in() {
                truth::server_killed($cli);
            }
        }
    };
}

truth_of!(claude, cli::CLAUDE);
truth_of!(codex, cli::CODEX);
truth_of!(opencode, cli::OPENCODE);
truth_of!(gemini, cli::GEMINI);
