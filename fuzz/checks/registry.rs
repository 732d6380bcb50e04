//! What must hold of an entry of the registry for any bytes: it leads to the project that was asked for,
//! or nowhere. The fuzz target and the test that replays the corpus share it.

use std::path::Path;

use patterm_host::registry;
use patterm_store::project::key_of;

/// Keys that entries are looked for under: those of the seeds, and one that nobody has.
const KEYS: [&str; 4] = ["af3dd4fd7f2b9df6", "0000000000000000", "../../../etc/passwd", ""];

pub(crate) fn entry(data: &[u8]) {
    let named: Vec<String> = paths_in(data).iter().map(|path| key_of(Path::new(path))).collect();
    for key in KEYS.into_iter().chain(named.iter().map(String::as_str)) {
        let Some(entry) = registry::parse_entry(key, data) else { continue };
        assert_eq!(entry.key, key, "it says that it is another project's");
        assert_eq!(key_of(&entry.project), key, "its folder is another project's");
        assert!(entry.project.is_absolute() && entry.socket.is_absolute());
        assert_ne!(entry.pid, 0);
        // Under any other name it is nobody's.
        for other in KEYS.into_iter().filter(|other| *other != key) {
            assert_eq!(registry::parse_entry(other, data), None);
        }
    }
}

/// Folders that the bytes may name, so that the keys of mutated ones are tried as well.
fn paths_in(data: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(data);
    let quoted = text.split('"').filter(|part| part.starts_with('/'));
    quoted.take(8).map(str::to_owned).collect()
}
