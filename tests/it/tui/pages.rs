//! Pages and layouts, with the keys that tmux users have in their fingers.

use super::Screen;
use crate::support::Place;

/// A shell on the first page, and one on a second page.
fn two_pages(screen: &mut Screen<'_>) {
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.line("echo one$((1 + 1))");
    screen.until("one2");
    screen.lead("c");
    screen.until_it(|shown| shown.contains("1:sh-2*") && shown.contains("prompt$"));
    screen.line("echo two$((1 + 1))");
    screen.until("two2");
}

#[test]
fn pages_are_made_switched_named_and_closed() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 100, 30);
    two_pages(&mut screen);
    let shown = screen.text();
    assert!(shown.contains("0:sh 1:sh-2*") && !shown.contains("one2"), "{shown}");
    screen.lead("p");
    let shown = screen.until("one2");
    assert!(shown.contains("0:sh* 1:sh-2") && !shown.contains("two2"), "{shown}");
    // What is typed goes to the shell that is shown.
    screen.line("echo first$((1 + 1))");
    screen.until("first2");
    screen.lead("1");
    screen.until("two2");
    screen.lead(",");
    screen.until("name of page 1:");
    screen.line("logs");
    screen.until("1:logs*");
    screen.lead("w");
    screen.until("(this page)");
    screen.press(&["Escape"]);
    screen.until_it(|shown| !shown.contains("(this page)"));
    screen.lead("&");
    screen.until("close page 1? Its processes keep running. y/n");
    screen.type_in("y");
    screen.until_it(|shown| shown.contains("one2") && !shown.contains("1:logs"));
    // Its process keeps running, and is idle again after the change of its size.
    screen.until("2 ○ > sh-2");
}

#[test]
fn panes_move_between_pages_and_everything_is_there_after_a_kill() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 120, 30);
    two_pages(&mut screen);
    screen.lead("J");
    screen.until("page 0: sh");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.contains("one2") && shown.contains("two2"));
    screen.lead("Space");
    screen.until("even-vertical");
    screen.lead("!");
    screen.until_it(|shown| !shown.contains("two2") && shown.contains("0:sh*"));
    screen.lead(",");
    screen.until("name of page 0:");
    screen.line("build");
    screen.until("0:build* 1:sh-2");
    // The machine goes down: the server and the terminal end, and nobody detached.
    let patterm = crate::support::Running::of(screen.front_pid("patterm"));
    place.run(&["kill"]);
    drop(screen);
    patterm.wait();
    let mut screen = Screen::new(&place, 100, 24);
    screen.patterm("");
    screen.until("restore processes?");
    screen.press(&["Enter"]);
    // The prompt of the earlier shell is still there; the marks in the tree belong to the new ones.
    screen.until_it(|shown| {
        let runs = ["1 ○ > sh ", "1 ● > sh "].iter().any(|row| shown.contains(row));
        shown.contains("restored 2 processes") && runs
    });
    // The next key clears the notice, which covers the names of the pages.
    screen.line("echo back$((1 + 1))");
    screen.until_it(|shown| shown.contains("0:build* 1:sh-2") && shown.contains("back2"));
}

#[test]
fn panes_are_reached_and_resized_by_arrows_and_labels() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 100, 30);
    screen.press(&["c"]);
    screen.until("prompt$");
    screen.lead("%");
    screen.until("put into a pane to the right");
    screen.press(&["Enter"]);
    screen.until_it(|shown| shown.matches("prompt$").count() >= 2 && shown.contains("sh-2"));
    screen.line("stty size | sed s/^/right:/");
    let columns = |shown: &str| -> Option<u16> {
        let size =
            shown.split("right:").filter_map(|rest| rest.split_whitespace().nth(1)).last()?;
        size.trim_matches('│').parse().ok()
    };
    let shown = screen.until_it(|shown| columns(shown).is_some());
    let before = columns(&shown).unwrap();
    // Each with the leader: without it, a busy machine may take longer between two keys than they count as repeated.
    screen.press(&["C-b", "C-Left", "C-b", "C-Left", "C-b", "C-Left"]);
    screen.line("clear; stty size | sed s/^/right:/");
    screen.until_it(|shown| columns(shown) == Some(before + 3));
    screen.lead("Left");
    screen.line("echo at$((1 + 1))left");
    let shown = screen.until("at2left");
    let row = shown.lines().find(|line| line.contains("at2left")).unwrap();
    assert!(row.find("at2left") < row.rfind('│'), "{shown}");
    screen.lead("q");
    screen.until_it(|shown| shown.contains(" 0  sh ") && shown.contains(" 1  sh-2 "));
    screen.type_in("1");
    screen.line("echo at$((1 + 1))label");
    let shown = screen.until("at2label");
    let row = shown.lines().find(|line| line.contains("at2label")).unwrap();
    assert!(row.find("at2label") > row.rfind('│'), "{shown}");
}

#[test]
fn the_pane_of_a_shell_leaves_after_exit_and_its_entry_stays() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 100, 30);
    two_pages(&mut screen);
    screen.line("exit 3");
    let shown = screen.until_it(|shown| shown.contains("one2") && !shown.contains("1:sh-2"));
    assert!(shown.contains("sh-2") && shown.contains("exit 3"), "its entry stays\n{shown}");
    // The keys go to the shell that is shown now.
    screen.line("echo still$((1 + 1))");
    screen.until("still2");
    screen.line("exit");
    screen.until("exited · ctrl+b R restarts it");
    // Closing something that has ended asks nothing.
    screen.lead("x");
    screen.until_it(|shown| !shown.contains("1 · > sh"));
}

#[test]
fn the_last_command_is_copied_and_pasted_into_another_shell() {
    let place = Place::new();
    let mut screen = Screen::with_patterm(&place, 100, 30);
    // What a shell with marks prints around a command.
    let script = r"printf '\033]133;A\007$ \033]133;B\007numbers\n\033]133;C\007'; seq 40 42 | sed s/^/number/; \
        printf '\033]133;D;0\007\033]133;A\007$ '; cat";
    place.run(&["run", "--name", "marks", "--", "sh", "-c", script]);
    screen.until("number42");
    screen.lead("[");
    screen.until("/ search");
    screen.type_in("o");
    screen.type_in("y");
    screen.until("copied 3 lines");
    assert_eq!(screen.clipboard(), "number40\nnumber41\nnumber42");
    screen.lead("c");
    screen.until_it(|shown| shown.contains("1:sh*") && shown.contains("prompt$"));
    screen.line("cat");
    screen.lead("]");
    screen.until_it(|shown| shown.contains("number40") && shown.contains("number42"));
}

#[test]
fn two_terminals_share_their_pages_and_the_last_one_typed_in_sets_the_size() {
    let place = Place::new();
    let settings = place.path("home").join(".config/patterm");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("tui.toml"), "layout = \"shared\"\n").unwrap();
    let mut one = Screen::with_patterm(&place, 100, 30);
    one.press(&["c"]);
    one.until("prompt$");
    let mut two = Screen::with_patterm(&place, 80, 24);
    two.until("prompt$");
    one.until("for another terminal");
    one.line("echo typed$((1 + 1))");
    two.until_it(|shown| shown.contains("typed2") && shown.contains("for another terminal"));
    one.until_it(|shown| !shown.contains("for another terminal"));
    // A page of one terminal is there in the other, which stays where it is.
    one.lead("c");
    one.until("1:sh-2*");
    let shown = two.until("0:sh* 1:sh-2");
    assert!(shown.contains("typed2"), "{shown}");
}
