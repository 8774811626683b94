//! Reads the process environment.

use std::path::PathBuf;

/// The variable's text; `None` when unset, empty or not UTF-8.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The folder for the store and the runs' files, absolute: `TARE_HOME`, else the system's place for user state.
pub fn state_folder() -> Option<PathBuf> {
    std::path::absolute(named_state_folder()?).ok()
}

fn named_state_folder() -> Option<PathBuf> {
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

/// The user's home; `None` if unknown, and for root if it is another user's, as under `sudo` with HOME kept: its
/// files come from that user.
pub fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let home = PathBuf::from(text(name)?);
    let is_own = super::files::own_uid() != 0 || super::files::check_folder(&home).is_ok();
    is_own.then_some(home)
}

/// The home that a program of this user should see instead of `HOME`; `None` if `HOME` is right. Under `sudo` with
/// HOME kept, the variable names another user's home, whose files would control the program.
pub fn home_instead() -> Option<String> {
    let is_wrong = cfg!(unix) && text("HOME").is_some() && home().is_none();
    let users = super::files::read_text(std::path::Path::new("/etc/passwd")).unwrap_or_default();
    let of_root = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&"0")).then(|| fields.get(5).map(|home| (*home).to_owned()))?
    };
    is_wrong.then(|| {
        users
            .lines()
            .find_map(of_root)
            .unwrap_or_else(|| "/root".to_owned())
    })
}

/// All variables whose names and values are UTF-8.
pub fn all() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
        .collect()
}

/// The working directory; `None` if it is gone or not UTF-8.
pub fn directory() -> Option<String> {
    std::env::current_dir()
        .ok()?
        .into_os_string()
        .into_string()
        .ok()
}
