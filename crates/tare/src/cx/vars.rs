//! The process environment, read in one place.

use std::path::PathBuf;

/// The variable's text; `None` when unset, empty or not UTF-8.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The folder for the store and the runs' files: `TARE_HOME`, else the system's place for a user's state.
pub fn state_folder() -> Option<PathBuf> {
    if let Some(folder) = text("TARE_HOME") {
        return Some(PathBuf::from(folder));
    }
    if cfg!(windows) {
        return text("LOCALAPPDATA").map(|folder| PathBuf::from(folder).join("tare"));
    }
    text("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| text("HOME").map(|home| PathBuf::from(home).join(".local/state")))
        .map(|folder| folder.join("tare"))
}

/// The user's own folder; `None` where it is not known, and for root where it is that of another user, as under
/// `sudo` with HOME kept: what lies there was put there by somebody else.
pub fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let home = PathBuf::from(text(name)?);
    let is_own = super::files::own_uid() != 0 || super::files::check_folder(&home).is_ok();
    is_own.then_some(home)
}

/// Every variable whose name and text are UTF-8.
pub fn all() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
        .collect()
}

/// The working directory; `None` where it is gone or not UTF-8.
pub fn directory() -> Option<String> {
    std::env::current_dir()
        .ok()?
        .into_os_string()
        .into_string()
        .ok()
}
