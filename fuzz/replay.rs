//! Replays the seeds of a fuzz target and the fuzzer's findings, then a burst of mutations of them, so that
//! every test run tries something new with the same checks.

use std::path::Path;

use arbtest::arbtest;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = crate_folder.ancestors().map(|above| above.join("fuzz/corpus").join(target));
    let folder = folders.into_iter().find(|folder| folder.is_dir()).expect("a corpus");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let seeds: Vec<_> = files.map(|path| std::fs::read(path).unwrap()).collect();
    assert!(seeds.len() >= 5, "{target} has its seeds");
    seeds
}

#[track_caller]
pub(crate) fn replay(target: &str, check: fn(&[u8])) {
    let seeds = corpus(target);
    seeds.iter().for_each(|seed| check(seed));
    let long = std::env::var_os("PATTERM_LONG").is_some_and(|value| value == "1");
    arbtest(|u| {
        let mut input = u.choose(&seeds)?.clone();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.int_in_range(0..=input.len())?;
            match u.int_in_range(0..=3)? {
                0 if at < input.len() => input[at] = u.arbitrary()?,
                1 => input.truncate(at),
                2 => drop(input.splice(at..at, u.choose(&seeds)?.iter().copied())),
                _ => input.insert(at, u.arbitrary()?),
            }
        }
        check(&input);
        Ok(())
    })
    .budget_ms(if long { 60_000 } else { 200 });
}
