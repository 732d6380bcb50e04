//! Real agents' CLIs in patterm's panes, with a model that follows instructions in the prompt: what
//! patterm reports and sends is compared with what the model received.

pub(crate) mod answers;
mod bad_input;
mod bench;
mod cli;
mod cli_queue;
mod dialog_races;
mod endings;
mod evening;
mod evidence;
pub(crate) mod fake;
mod first_letters;
mod first_request;
mod in_tui;
mod left_in_prompt;
mod limits;
mod menus;
mod mock;
mod odd_messages;
mod picture;
mod quoted;
mod recording;
mod report;
mod restart;
mod shapes;
mod six;
mod starts;
mod team;
mod terminal_name;
mod tool_search;
mod truth;

/// The accuracy table for one CLI.
macro_rules! truth_of {
    ($module:ident, $cli:expr) => {
        mod $module {
            use super::{
                answers, cli, cli_queue, dialog_races, first_letters, first_request, limits, menus,
                odd_messages, quoted, restart, shapes, starts, terminal_name, truth,
            };

            #[test]
            fn messages_of_all_sizes_arrive_complete_and_once() {
                truth::messages($cli);
            }

            #[test]
            fn odd_messages_arrive_as_they_were_sent() {
                odd_messages::messages($cli);
            }

            #[test]
            fn a_message_around_a_permission_dialog_is_neither_lost_nor_duplicated() {
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
            fn a_message_in_an_interrupted_turn_is_recorded_as_delivered_only_if_it_arrived() {
                cli_queue::cut_short($cli);
            }

            #[test]
            fn nothing_is_typed_into_a_permission_dialog() {
                truth::permission($cli);
            }

            #[test]
            fn an_option_of_a_dialog_that_a_person_chooses_is_what_it_does() {
                answers::permission($cli);
            }

            #[test]
            fn shift_and_enter_make_a_new_line_in_its_prompt() {
                terminal_name::shift_enter($cli);
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
            fn first_prompts_may_contain_anything() {
                truth::odd_first_prompts($cli);
            }

            #[test]
            fn its_first_turn_has_the_tools() {
                truth::tools_at_once($cli);
            }

            #[test]
            fn its_model_gets_patterms_tools() {
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
            fn quoted_screens_do_not_change_its_state() {
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
            fn it_is_idle_after_escape_and_after_errors() {
                truth::ends_of_turns($cli);
            }

            #[test]
            fn a_restart_resumes_the_conversation_whatever_ended_it() {
                restart::resumes_after_every_exit($cli);
            }

            #[test]
            fn a_restart_resumes_the_conversation_that_the_person_switched_to() {
                restart::turns_to_another($cli);
            }

            #[test]
            fn the_server_is_killed_while_messages_wait_and_while_one_is_typed() {
                truth::server_killed($cli);
            }
        }
    };
}

// One module for each CLI that has a `cli.json`; `build.rs` finds them.
include!(concat!(env!("OUT_DIR"), "/clis.rs"));
