//! Programs that write anything into the folder of their traces, and repositories that configure programs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Repository;
use crate::support::tool_client::until;

#[test]
fn what_a_program_writes_into_its_folder_costs_little_and_hides_no_later_commit() {
    let mut repository = Repository::new();
    let secret = repository.place.path("secret");
    std::fs::write(&secret, "kept").unwrap();
    // The names are like those of git, so that the server looks into the files. With too many of them, git itself
    // would stop tracing until they are removed.
    let script = format!(
        "cd \"$GIT_TRACE2_EVENT\"
        i=100000; while [ $i -lt 103000 ]; do echo garbage >20261119T201217.${{i}}Z-H0a7c9cdf-P00005193; i=$((i+1)); done
        truncate -s 1T 20261119T201217.200000Z-H0a7c9cdf-P00005193
        ln -s {} 20261119T201217.200001Z-H0a7c9cdf-P00005193
        mkfifo 20261119T201217.200002Z-H0a7c9cdf-P00005193
        mkdir -p 20261119T201217.200003Z-H0a7c9cdf-P00005193/deep other
        touch -- -rf $(printf 'x%.0s' $(seq 200))
        while [ $(ls | wc -l) -gt 100 ]; do sleep 0.05; done
        cd -; git commit -qm real --allow-empty",
        secret.display()
    );
    let id = repository.sh(&script);
    let hash = repository.git(&["rev-parse", "HEAD"]);
    let event = repository.commit(&hash);
    assert_eq!(event["process_id"], id);
    assert_eq!(repository.commits().len(), 1);
    let folder = repository.place.state().file("git");
    until("the folder of the run is gone", || {
        std::fs::read_dir(&folder).unwrap().next().is_none().then_some(())
    });
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "kept");
}

#[test]
fn a_folder_that_was_replaced_by_a_link_is_left_alone() {
    let mut repository = Repository::new();
    let target = repository.place.folder("target");
    let file = target.join("20261119T201217.158904Z-H0a7c9cdf-P00005194");
    std::fs::write(&file, "mine").unwrap();
    let script = format!(
        "rm -r \"$GIT_TRACE2_EVENT\"; ln -s {} \"$GIT_TRACE2_EVENT\"; git commit -qm lost --allow-empty",
        target.display()
    );
    repository.sh(&script);
    repository.sh("git commit -qm found --allow-empty");
    let hash = repository.git(&["rev-parse", "HEAD"]);
    repository.commit(&hash);
    assert_eq!(repository.commits().len(), 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn programs_that_a_repository_configures_are_not_run() {
    let mut repository = Repository::new();
    let (evil, signer) = (repository.place.path("evil"), repository.place.path("signer"));
    let ran = repository.place.path("ran");
    script(&evil, &format!("echo \"$0 $*\" >>{}\ncat", ran.display()));
    script(
        &signer,
        "cat >/dev/null; echo '[GNUPG:] SIG_CREATED ' >&2\n\
        printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'",
    );
    let hooks = repository.place.folder("hooks");
    for hook in ["post-commit", "reference-transaction", "post-index-change", "fsmonitor-watchman"]
    {
        std::fs::copy(&evil, hooks.join(hook)).unwrap();
    }
    // The commit itself is made without them, by somebody who knows better.
    let (evil, signer, hooks) = (evil.display(), signer.display(), hooks.display());
    let id = repository.sh(&format!(
        "echo 1 >a.txt; printf '*.txt diff=evil filter=evil\\n' >.gitattributes; git add .
        for key in core.fsmonitor core.pager core.sshCommand core.askPass core.editor gpg.program \
          diff.external diff.evil.command diff.evil.textconv filter.evil.clean filter.evil.smudge \
          filter.evil.process pager.log pager.diff-tree pager.rev-parse credential.helper \
          core.alternateRefsCommand trailer.x.command; do git config $key {evil}; done
        git config log.showSignature true; git config core.hooksPath {hooks}
        git config alias.log '!{evil}'; git config remote.origin.promisor true
        git config remote.origin.url 'ext::{evil} %S'; git config protocol.ext.allow always
        git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c gpg.program={signer} \
          -c filter.evil.process= -c filter.evil.clean= commit -qS -m signed
        [ ! -e {} ]",
        ran.display()
    ));
    let hash = repository.git(&["rev-parse", "HEAD"]);
    let event = repository.commit(&hash);
    assert_eq!((&event["process_id"], &event["data"]["file_count"]), (&id.into(), &2.into()));
    let blamed = repository.place.run(&["blame", "HEAD"]);
    assert!(blamed.contains("made by  person"), "{blamed}");
    let ran = std::fs::read_to_string(&ran).unwrap_or_default();
    assert_eq!(ran, "", "programs that the repository configures");
}
