//! The path of the user's settings, as people are told it.

use std::path::{Path, PathBuf};

use patterm_host::server::settings_file;

use crate::print::printable_path;

/// The file with the keys and colours.
pub(crate) const TUI_SETTINGS: &str = "tui.toml";

/// Where the file with the keys and colours is, or would be.
pub(crate) fn shown() -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = settings_file(TUI_SETTINGS).unwrap_or_else(|| TUI_SETTINGS.into());
    below_home(&path, home.as_deref())
}

fn below_home(path: &Path, home: Option<&Path>) -> String {
    let home = home.filter(|home| home.is_absolute());
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let shown = below.map_or_else(|| path.to_owned(), |below| Path::new("~").join(below));
    printable_path(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_folder_is_abbreviated() {
        let shown = |path: &str, home: &str| below_home(Path::new(path), Some(Path::new(home)));
        assert_eq!(shown("/h/.config/patterm/tui.toml", "/h"), "~/.config/patterm/tui.toml");
        assert_eq!(shown("/etc/x/patterm/tui.toml", "/h"), "/etc/x/patterm/tui.toml");
        assert_eq!(shown("tui.toml", ""), "tui.toml");
    }
}
