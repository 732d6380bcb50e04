//! What a package brings besides the binary, found where shells and `man` look for it.

use super::stage::Stage;

#[test]
fn shells_and_man_know_what_was_installed() {
    let mut stage = Stage::installed();
    check_papers(&mut stage);
    let listed = stage.does("dpkg --listfiles patterm");
    for file in ["bin/patterm", "lib/systemd/user/patterm@.service", "share/doc/patterm/copyright"]
    {
        assert!(listed.contains(&format!("/usr/{file}\n")), "{file}: {listed}");
    }
    // Whoever does not like it is rid of it.
    stage.does("sudo apt-get remove --quiet=2 --yes patterm");
    assert_eq!(stage.does("sudo find /etc /usr -name '*patterm*'"), "");
}

#[test]
fn an_archive_brings_the_same() {
    let mut stage = Stage::new(&["static"]);
    stage.does("sudo tar -C /usr/local --strip-components=1 -xzf patterm-*.tar.gz");
    stage.does("sudo mandb --quiet");
    check_papers(&mut stage);
    stage.does("test -f /usr/local/lib/systemd/user/patterm@.service");
}

/// The man pages and the completions of each shell are found.
#[track_caller]
fn check_papers(stage: &mut Stage) {
    let version = stage.does("patterm --version");
    assert_eq!(version.trim(), format!("patterm {}", patterm_host::VERSION));
    let page = stage.does("man patterm-token-new");
    assert!(page.contains("--expires-days"), "{page}");
    let known = stage.does("man -k patterm");
    assert!(known.contains("patterm-upgrade (1)"), "{known}");
    let bash = ". /usr/share/bash-completion/bash_completion; _completion_loader patterm || true
        COMP_WORDS=(patterm tok) COMP_CWORD=1; _patterm patterm tok patterm; echo ${COMPREPLY[@]}";
    assert_eq!(stage.does(bash).trim(), "token");
    let zsh = "zsh -c 'autoload -U compinit; compinit -u -D; print -r -- $_comps[patterm]'";
    assert_eq!(stage.does(zsh).trim(), "_patterm");
    // As desktops set it; without it fish looks below /usr alone.
    let folders = "XDG_DATA_DIRS=/usr/local/share:/usr/share";
    let fish = stage.does(&format!("{folders} fish -c 'complete -C \"patterm tok\"'"));
    assert!(fish.starts_with("token\t"), "{fish}");
}

/// A stranger's first look: nothing is broken, and what is missing comes with what to do.
#[test]
fn the_doctor_on_a_machine_that_has_nothing() {
    let mut stage = Stage::installed();
    let said = stage.does("LANG=C.UTF-8 patterm doctor");
    let ill: Vec<_> = said.lines().filter(|line| !line.starts_with("good")).collect();
    let [agents, advice] = ill.as_slice() else { panic!("{said}") };
    assert!(agents.starts_with("fair    agents"), "{said}");
    assert!(advice.contains("Claude Code, Codex, opencode or Gemini CLI"), "{said}");
}
