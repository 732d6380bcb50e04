//! `patterm init` on typical projects.

use patterm_project::project_file::ProjectFile;

use super::fails;
use crate::support::Place;

#[test]
fn init_derives_a_file_from_the_project() {
    let place = Place::new();
    let root = place.path("project");
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    std::fs::create_dir(root.join(".git")).unwrap();
    write(".git/HEAD", "ref: refs/heads/main\n");
    std::fs::create_dir(root.join("web")).unwrap();
    write("package.json", r#"{"scripts": {"dev": "vite", "build": "tsc\n", "\u001b[31m\"": "x"}}"#);
    write("Makefile", "lint:\n\ttrue\nbuild:\n\ttrue\n");
    write("Procfile", "api: python3 -m http.server\n");
    let mut init = place.patterm(&["init"]);
    // Any folder of the project will do.
    let output = init.current_dir(root.join("web")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("patterm.toml") && printed.contains("`patterm trust`"), "{printed}");
    let text = std::fs::read_to_string(root.join("patterm.toml")).unwrap();
    let file = ProjectFile::parse(&text).unwrap();
    let names: Vec<_> = file.processes.keys().map(String::as_str).collect();
    assert_eq!(names, ["api", "dev"]);
    // `patterm up` would run them all, and `make clean` may delete something.
    assert!(text.contains("# [processes.Makefile-build]\n# command = \"make build\"\n"), "{text}");
    let tasks =
        "as comments, because `patterm up` would start them: 31m, build, lint, Makefile-build";
    assert!(printed.contains(tasks), "{printed}");
    assert_eq!(file.processes["dev"].argv, ["sh", "-c", "npm run dev"]);
    assert!(file.processes.values().all(|definition| !definition.autostart), "{text}");
    assert!(text.lines().any(|line| line == "# From Procfile:"), "{text}");

    let printed = fails(&place, &["init"]);
    assert!(printed.contains("already exists; it was not changed"), "{printed}");
    assert_eq!(std::fs::read_to_string(root.join("patterm.toml")).unwrap(), text);
    // It is usable unchanged.
    place.run(&["trust", "--yes"]);
    place.run(&["call", "spawn_process", r#"{"preset": "api"}"#]);
}

#[test]
fn an_empty_project_gets_an_example() {
    let place = Place::new();
    let printed = place.run(&["init"]);
    assert!(printed.contains("it contains an example"), "{printed}");
    let text = std::fs::read_to_string(place.path("project/patterm.toml")).unwrap();
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
}

#[test]
fn names_that_the_project_file_refuses_are_replaced_and_that_is_said() {
    let place = Place::new();
    let root = place.path("project");
    std::fs::write(root.join("Procfile"), "p1: sleep 1\n").unwrap();
    let compose =
        "services:\n  2:\n    image: x\n  web:\n    image: y\n    depends_on:\n      - 2\n";
    std::fs::write(root.join("compose.yaml"), compose).unwrap();
    let servers = r#"{"mcpServers": {"bots": {"command": "x"}}}"#;
    std::fs::write(root.join(".mcp.json"), servers).unwrap();
    let printed = place.run(&["init"]);
    let renamed = "renamed from `p1`, which looks like a process's id";
    assert!(printed.contains(&format!("p1-service: sleep 1 ({renamed})")), "{printed}");
    assert!(
        printed.contains("not taken over from .mcp.json: bots: `bots` is reserved"),
        "{printed}"
    );
    let text = std::fs::read_to_string(root.join("patterm.toml")).unwrap();
    assert!(text.contains(&format!("# {renamed}\n[processes.p1-service]")), "{text}");
    let file = ProjectFile::parse(&text).unwrap();
    assert_eq!(file.in_order(), ["2-service", "p1-service", "web"], "{text}");
}
