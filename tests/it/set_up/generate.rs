//! Completions, man pages and the schema are generated from the definitions, and are correct.

use std::path::Path;

use crate::support::Place;

#[test]
fn every_shell_has_completions() {
    let place = Place::new();
    // These ask patterm at each completion; the others list the verbs.
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]);
        assert!(script.contains(&format!("complete --shell {shell}")), "{shell}: {script}");
    }
    for shell in ["elvish", "powershell"] {
        let script = place.run(&["completions", shell]);
        assert!(script.contains("mcp-stdio") && script.contains("trust"), "{shell}: {script}");
    }
    let script = place.path("completions");
    std::fs::write(&script, place.run(&["completions", "bash"])).unwrap();
    let checked = place.command(Path::new("bash")).arg("-n").arg(script).status().unwrap();
    assert!(checked.success());
}

#[test]
fn every_verb_has_a_man_page() {
    let place = Place::new();
    let folder = place.path("man/man1");
    place.run(&["man", folder.to_str().unwrap()]);
    let page = std::fs::read_to_string(folder.join("patterm.1")).unwrap();
    assert!(page.contains(".TH patterm 1") && page.contains("patterm\\-trust(1)"), "{page}");
    for verb in ["run", "trust", "doctor", "mcp-stdio"] {
        assert!(folder.join(format!("patterm-{verb}.1")).is_file(), "{verb}");
    }
    for hidden in ["keeper", "hook"] {
        assert!(!folder.join(format!("patterm-{hidden}.1")).exists(), "{hidden}");
    }
}

#[test]
fn the_committed_schema_is_the_one_that_patterm_validates_with() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/patterm.schema.json");
    let printed = Place::new().run(&["schema"]);
    assert_eq!(
        std::fs::read_to_string(committed).unwrap(),
        printed,
        "`patterm schema > docs/patterm.schema.json` writes it anew"
    );
}
