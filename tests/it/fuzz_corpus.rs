//! The seeds of the fuzz targets, and what the fuzzers found, replayed; then a burst of mutations
//! of them, so that every run of the tests tries something new within the same checks.

use std::path::{Path, PathBuf};

use arbtest::arbtest;

#[path = "../../fuzz/checks.rs"]
mod checks;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let seeds: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    assert!(seeds.len() >= 8, "{target} has its seeds");
    seeds
}

#[track_caller]
fn replay(target: &str, check: fn(&[u8])) {
    let seeds = corpus(target);
    for (_, seed) in &seeds {
        check(seed);
    }
    arbtest(|u| {
        let (_, seed) = u.choose(&seeds)?;
        let mut input = seed.clone();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.int_in_range(0..=input.len())?;
            match u.int_in_range(0..=3)? {
                0 if at < input.len() => input[at] = u.arbitrary()?,
                1 => input.truncate(at),
                2 => drop(input.splice(at..at, u.choose(&seeds)?.1.iter().copied())),
                _ => input.insert(at, u.arbitrary()?),
            }
        }
        check(&input);
        Ok(())
    });
}

#[test]
fn frames() {
    replay("frames", checks::frames);
}

#[test]
fn messages() {
    replay("messages", checks::messages);
}
