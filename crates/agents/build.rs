//! Lists the built-in presets: every TOML file in `src/presets/builtin` is one, and the other files there
//! are those that presets name with a leading `@`.

use std::path::Path;
use std::{env, fs, io};

const FOLDER: &str = "src/presets/builtin";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=build.rs");
    let root = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER)? {
        names.push(
            entry?.file_name().into_string().map_err(|name| {
                io::Error::other(format!("{FOLDER}: {name:?} is not valid UTF-8"))
            })?,
        );
    }
    // The order of the list of agents.
    names.sort();
    let entry = |key: &str, name: &str| {
        let path = Path::new(&root).join(FOLDER).join(name);
        format!("    ({key:?}, include_str!({:?})),\n", path.display().to_string())
    };
    let (mut presets, mut files) = (String::new(), String::new());
    for name in &names {
        match name.strip_suffix(".toml") {
            Some(preset) => presets.push_str(&entry(preset, name)),
            None => files.push_str(&entry(&format!("@{name}"), name)),
        }
    }
    let text = format!("&[\n{presets}]\n");
    fs::write(Path::new(&out).join("built_in.rs"), text)?;
    fs::write(Path::new(&out).join("built_in_files.rs"), format!("&[\n{files}]\n"))
}
