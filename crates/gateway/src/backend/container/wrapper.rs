//! The wrapper that runs in front of a server inside a container, and how it gets there. Its source
//! is in `wrapper/`; `build.rs` compiles it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The program; empty if it could not be built.
const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/patterm-wrapper"));

/// Why it could not be built.
const WHY_NOT: &str = include_str!(concat!(env!("OUT_DIR"), "/patterm-wrapper.why"));

/// Its path in containers that patterm starts.
pub(super) const MOUNTED: &str = "/.patterm-wrapper";

/// Characters of its hash in its name: each build has its own file.
const HASH_LETTERS: usize = 12;

/// Copies the wrapper into a container with a shell, to a folder where it can be written and run;
/// prints its path.
pub(super) const INSTALL: &str = r#"
umask 022; kept=
for folder in / /tmp /var/tmp /run /dev/shm; do
  file=${folder%/}/$0
  [ -x "$file" ] && "$file" --check 2>/dev/null && echo "$file" && cat > /dev/null && exit 0
done
for folder in / /tmp /var/tmp /run /dev/shm; do
  file=${folder%/}/$0
  if [ -n "$kept" ]; then cat "$kept" > "$file" || continue; else cat > "$file" || continue; fi
  kept=$file
  chmod 755 "$file" && "$file" --check && echo "$file" && exit 0
done 2>/dev/null
exit 1"#;

/// The path that the shell printed.
pub(super) fn installed(output: &[u8]) -> Result<String, String> {
    let path = String::from_utf8_lossy(output).trim().to_owned();
    match path.starts_with('/') {
        true => Ok(path),
        false => Err("the shell did not print the wrapper's path".to_owned()),
    }
}

/// The program, or why there is none.
pub(super) fn bytes() -> Result<&'static [u8], &'static str> {
    if BYTES.is_empty() { Err(WHY_NOT) } else { Ok(BYTES) }
}

/// The name of its file inside a container.
pub(super) fn file_name() -> String {
    let hash: String = Sha256::digest(BYTES).iter().map(|byte| format!("{byte:02x}")).collect();
    format!(".patterm-wrapper-{}", &hash[..HASH_LETTERS])
}

/// The command with the wrapper in front of it.
pub(super) fn in_front(wrapper: &str, variables: usize, command: &[String]) -> Vec<String> {
    let mut argv = vec![wrapper.to_owned(), "--heartbeat".to_owned()];
    if variables > 0 {
        argv.extend(["--env".to_owned(), variables.to_string()]);
    }
    argv.push("--".to_owned());
    argv.extend_from_slice(command);
    argv
}

/// Variables as the wrapper reads them first.
pub(super) fn variables(env: &BTreeMap<String, String>) -> Vec<u8> {
    env.iter().flat_map(|(key, value)| format!("{key}={value}\0").into_bytes()).collect()
}

/// Writes it to a folder on this machine, for containers that mount it.
pub(super) fn on_disk(folder: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join(file_name());
    let is_complete = std::fs::metadata(&file).is_ok_and(|meta| meta.len() == BYTES.len() as u64);
    if !is_complete {
        let new = folder.join(format!("{}.{}", file_name(), std::process::id()));
        std::fs::write(&new, BYTES)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755))?;
        std::fs::rename(new, &file)?;
    }
    Ok(file)
}

/// The wrapper as a tar archive: one header, its bytes, and two empty blocks.
pub(super) fn archive() -> Vec<u8> {
    const BLOCK: usize = 512;
    let mut header = [0_u8; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, &file_name());
    put(100, "0000755\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", BYTES.len()));
    put(136, "00000000000\0");
    // The checksum is computed with blanks in its own place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend_from_slice(BYTES);
    archive.resize(archive.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_follows_the_wrapper_unchanged() {
        let command = ["/app/mcp".to_owned(), "--heartbeat".to_owned()];
        let argv = in_front("/w", 2, &command);
        assert_eq!(argv, ["/w", "--heartbeat", "--env", "2", "--", "/app/mcp", "--heartbeat"]);
        let env = BTreeMap::from([("A".to_owned(), "1\n2".to_owned())]);
        assert_eq!(variables(&env), b"A=1\n2\0");
    }

    #[test]
    fn the_archive_consists_of_whole_blocks() {
        let archive = archive();
        assert_eq!(archive.len() % 512, 0);
        assert!(archive.starts_with(file_name().as_bytes()));
    }
}
