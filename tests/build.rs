//! Lists the agents' CLIs under test: every folder of recordings with a `cli.json`.

use std::path::Path;
use std::{env, fs, io};

const FOLDER: &str = "agents/recordings";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(FOLDER)? {
        let entry = entry?;
        if entry.path().join("cli.json").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let modules: String = names
        .iter()
        .map(|name| format!("truth_of!({}, cli::Cli::named({name:?}));\n", name.replace('-', "_")))
        .collect();
    fs::write(Path::new(&out).join("clis.rs"), modules)
}
