//! The results of the accuracy table for one CLI: a line for each row, for `scripts/test` to print.

use std::path::Path;

use super::cli::Cli;

/// Records a row, if requested.
pub(super) fn row(cli: Cli, name: &str, found: &str) {
    let Some(folder) = std::env::var_os("PATTERM_TRUTH_REPORT") else { return };
    let line = format!("{:<9} {:<8} {name:<28} {found}\n", cli.name, cli.version());
    let file = format!("{}-{}", cli.name, name.replace(' ', "-"));
    std::fs::write(Path::new(&folder).join(file), line).unwrap();
}
