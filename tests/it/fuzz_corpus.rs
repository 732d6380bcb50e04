//! The seeds of the fuzz targets whose parsers are public, and what the fuzzers found, replayed. Those of
//! private parsers are replayed beside them.

#[path = "../../fuzz/checks/input.rs"]
mod input;
#[path = "../../fuzz/checks/project.rs"]
mod project;
#[path = "../../fuzz/checks/registry.rs"]
mod registry;
#[path = "../../fuzz/replay.rs"]
mod replay;
#[path = "../../fuzz/checks/screen.rs"]
mod screen;
#[path = "../../fuzz/checks/text.rs"]
mod text;
#[path = "../../fuzz/checks/wire.rs"]
mod wire;

use replay::replay;

#[test]
fn frames() {
    replay("frames", wire::frames);
}

#[test]
fn messages() {
    replay("messages", wire::messages);
}

#[test]
fn one_line() {
    replay("one_line", wire::one_line);
}

#[test]
fn views() {
    replay("views", wire::views);
}

#[test]
fn screens() {
    replay("screen", screen::screen);
}

#[test]
fn texts_through_sizes() {
    replay("reflow", text::reflow);
}

#[test]
fn texts_as_clusters() {
    replay("clusters", text::clusters_agree);
}

#[test]
fn floods() {
    replay("flood", text::flood);
}

#[test]
fn inputs() {
    replay("input", input::input);
}

#[test]
fn project_files() {
    replay("project", project::project);
}

#[test]
fn registry_entries() {
    replay("registry", registry::entry);
}
