//! What a package contains besides the binary, in the places where shells and `man` look for it.

use super::harness::Harness;

#[test]
fn completions_and_man_pages_are_installed() {
    let mut harness = Harness::installed();
    check_papers(&mut harness);
    let listed = harness.does("dpkg --listfiles patterm");
    for file in ["bin/patterm", "lib/systemd/user/patterm@.service", "share/doc/patterm/copyright"]
    {
        assert!(listed.contains(&format!("/usr/{file}\n")), "{file}: {listed}");
    }
    // It can be removed completely.
    harness.does("sudo apt-get remove --quiet=2 --yes patterm");
    assert_eq!(harness.does("sudo find /etc /usr -name '*patterm*'"), "");
}

#[test]
fn an_archive_contains_the_same() {
    let mut harness = Harness::new(&["static"]);
    harness.does("sudo tar -C /usr/local --strip-components=1 -xzf patterm-*.tar.gz");
    harness.does("sudo mandb --quiet");
    check_papers(&mut harness);
    harness.does("test -f /usr/local/lib/systemd/user/patterm@.service");
}

/// The man pages and the completions of each shell are found.
#[track_caller]
fn check_papers(harness: &mut Harness) {
    let version = harness.does("patterm --version");
    assert_eq!(version.trim(), format!("patterm {}", patterm_host::VERSION));
    let page = harness.does("man patterm-token-new");
    assert!(page.contains("--expires-days"), "{page}");
    let known = harness.does("man -k patterm");
    assert!(known.contains("patterm-upgrade (1)"), "{known}");
    let bash = ". /usr/share/bash-completion/bash_completion; _completion_loader patterm || true
        COMP_WORDS=(patterm tok) COMP_CWORD=1; _patterm patterm tok patterm; echo ${COMPREPLY[@]}";
    assert_eq!(harness.does(bash).trim(), "token");
    let zsh = "zsh -c 'autoload -U compinit; compinit -u -D; print -r -- $_comps[patterm]'";
    assert_eq!(harness.does(zsh).trim(), "_patterm");
    // As desktops set it; without it fish searches only /usr.
    let folders = "XDG_DATA_DIRS=/usr/local/share:/usr/share";
    let fish = harness.does(&format!("{folders} fish -c 'complete -C \"patterm tok\"'"));
    assert!(fish.starts_with("token\t"), "{fish}");
}

/// A new user's first run: nothing is broken, and everything missing comes with a fix.
#[test]
fn the_doctor_on_a_bare_machine() {
    let mut harness = Harness::installed();
    let printed = harness.does("LANG=C.UTF-8 patterm doctor");
    let ill: Vec<_> = printed.lines().filter(|line| !line.starts_with("good")).collect();
    let [agents, advice] = ill.as_slice() else { panic!("{printed}") };
    assert!(agents.starts_with("fair    agents"), "{printed}");
    assert!(advice.contains("Claude Code, Codex, opencode or Gemini CLI"), "{printed}");
}
