//! Errors in the user's own settings: who says so, and what is not done until they are fixed.

use serde_json::Value;

use crate::support::Place;

/// Writes the user's settings.
fn configure(place: &Place, text: &str) {
    let folder = place.path("home/.config/patterm");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

/// What a verb that must succeed prints on standard output and standard error.
#[track_caller]
fn printed(place: &Place, arguments: &[&str]) -> (String, String) {
    let output = place.patterm(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
    (stdout, stderr)
}

/// The findings of the doctor about the settings.
fn settings_findings(place: &Place) -> Vec<Value> {
    let output = place.patterm(&["doctor", "--json"]).output().unwrap();
    let mut found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    found.retain(|finding| finding["check"] == "settings");
    found
}

#[test]
fn an_error_is_reported_by_every_verb_that_depends_on_the_file() {
    let place = Place::new();
    let file = "[processes.a]\ncommand = 'cat'\n[servers.s]\ncommand = ['x']\n";
    std::fs::write(place.path("project/patterm.toml"), file).unwrap();
    place.run(&["trust", "--yes"]);
    configure(&place, "update_environment = \"X\"\n[limits]\nprocesses = \"x\"\n");
    let error = "/config.toml:1:22: `update_environment` must be";
    let more = "(and 1 more); until this is fixed, no hooks, servers or other settings of this file take \
                effect, and no environments are stored";
    for verb in [&["ps"][..], &["servers"], &["hooks"]] {
        let (stdout, _) = printed(&place, verb);
        assert!(stdout.contains(error) && stdout.contains(more), "{verb:?}: {stdout}");
    }
    let changing = [
        &["serve"][..],
        &["run", "--name", "one", "--", "cat"],
        &["shell"],
        &["up"],
        &["stop", "one"],
        &["start", "one"],
        &["restart", "one"],
    ];
    for verb in changing {
        let (_, stderr) = printed(&place, verb);
        let says = stderr.contains(error) && stderr.contains(more);
        assert_eq!(says, verb[0] != "stop", "{verb:?}: {stderr}");
    }
    let found = settings_findings(&place);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["health"], "broken");
    let says = found[0]["says"].as_str().unwrap();
    assert!(
        says.contains(error) && says.contains("/config.toml:3:13: `limits.processes`"),
        "{says}"
    );
    configure(&place, "");
    assert_eq!(settings_findings(&place), Vec::<Value>::new());
    let (stdout, _) = printed(&place, &["ps"]);
    assert!(!stdout.contains("config.toml"), "{stdout}");
}

#[test]
fn a_limit_that_only_a_project_can_set_is_reported_and_the_rest_takes_effect() {
    let place = Place::new();
    configure(&place, "remember_environment = true\n[limits]\nprocesses = 1\n");
    let (_, stderr) = printed(&place, &["run", "--", "cat"]);
    let ignored = "/config.toml:3:13: `limits.processes` has no effect in this file; set it in the \
                   patterm.toml of a project";
    assert!(stderr.contains(ignored) && !stderr.contains("until this is fixed"), "{stderr}");
    assert!(place.state().file("environments").exists());
    let found = settings_findings(&place);
    assert_eq!((found.len(), &found[0]["health"]), (1, &Value::from("fair")), "{found:?}");
}

/// What cannot be read may say that nothing is to be stored.
#[test]
fn no_environment_is_stored_while_a_settings_file_has_errors() {
    for text in ["remember_environment = \"false\"\n", "remember_enviroment = false\n", "a = ["] {
        let place = Place::new();
        configure(&place, text);
        printed(&place, &["run", "--", "cat"]);
        assert!(!place.state().file("environments").exists(), "{text}");
        let (stdout, _) = printed(&place, &["restart", "p1"]);
        assert!(stdout.contains("settings with errors"), "{text}: {stdout}");
        configure(&place, "");
        printed(&place, &["run", "--", "cat"]);
        assert!(place.state().file("environments").exists(), "{text}");
    }
    let place = Place::new();
    std::fs::write(place.path("project/patterm.toml"), "remember_environment = 0\n").unwrap();
    printed(&place, &["run", "--", "cat"]);
    assert!(!place.state().file("environments").exists());
}
