//! What must hold of a project file for any text: it is a definition, or its mistakes have places in it;
//! and neither can be shown so that something is hidden. The fuzz target and the test that replays the
//! corpus share it.

use patterm_project::project_file::{ProjectFile, describe};

pub(crate) fn project(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let shown = |shown: &str| {
        let hides = |c: char| c.is_control() && c != '\n';
        assert!(!shown.contains(hides), "{}", shown.escape_debug());
    };
    match ProjectFile::parse(text) {
        Ok(file) => shown(&describe(&file)),
        Err(faults) => {
            assert!(!faults.is_empty());
            let lines: Vec<&str> = text.split('\n').collect();
            for fault in faults {
                let line = lines.get(fault.line - 1);
                let columns =
                    line.unwrap_or_else(|| panic!("{fault} has no place")).chars().count();
                assert!((1..=columns + 1).contains(&fault.column), "{fault} has no place");
                shown(&fault.to_string());
            }
        }
    }
}
