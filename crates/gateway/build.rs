//! Compiles the wrapper that runs in front of servers in containers. If that is not possible,
//! because there is no static C library, the build continues, and servers in containers run without
//! it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=wrapper");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let wrapper = out.join("patterm-wrapper");
    let why = compile(&wrapper).err().unwrap_or_default();
    if !why.is_empty() {
        println!("cargo::warning=servers in containers will run without the wrapper: {why}");
        let _ = std::fs::write(&wrapper, b"");
    }
    // One line, shown when the wrapper is needed.
    let _ = std::fs::write(out.join("patterm-wrapper.why"), why);
}

#[expect(clippy::disallowed_methods, reason = "the build runs the compiler")]
fn compile(wrapper: &Path) -> Result<(), String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let target = std::env::var("TARGET").unwrap_or_default();
    let _ = std::fs::remove_file(wrapper);
    let mut command = Command::new(compiler);
    command.args(["--edition=2024", "--crate-name=patterm_wrapper", "--crate-type=bin"]);
    command.args(["-Ctarget-feature=+crt-static", "-Crelocation-model=static"]);
    command.args(["-Cpanic=abort", "-Copt-level=z", "-Clto=fat", "-Cstrip=symbols"]);
    if let Some(linker) = std::env::var_os("RUSTC_LINKER") {
        let mut chosen = std::ffi::OsString::from("-Clinker=");
        chosen.push(linker);
        command.arg(chosen);
    }
    command.args(["--target", &target]).arg("-o").arg(wrapper).arg("wrapper/main.rs");
    let output = command.output().map_err(|e| format!("cannot run the compiler: {e}"))?;
    if output.status.success() && wrapper.is_file() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("error")).unwrap_or("the compiler failed");
    Err(line.trim().to_owned())
}
