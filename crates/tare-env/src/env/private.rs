//! Finds the host files that must stay hidden in an environment whose root is made of them.
//!
//! Root in such an environment reads what root may read. So homes, keys, password files, engine sockets (write access
//! to them equals root) and Tare's own files are covered. Exceptions are mounted explicitly: the user's bind mounts
//! and the programs of the search path.
//! For root a list is not enough: files that only root can read are found by their mode, in the places where programs
//! keep such files. An ordinary user's container reads no more than that user.
//! Limits: secrets elsewhere or deeper, and the contents of bind-mounted folders, are not hidden.

use crate::env::prelude::*;

use std::sync::OnceLock;

/// Folders and files that are always private; those that do not exist are skipped.
const ALWAYS: [&str; 40] = tare_model::rows! {
    "/root", "/home", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd",
    "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt",
    "/etc/krb5.keytab", "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/wireguard", "/etc/openvpn",
    "/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/etc/ppp", "/var/backups",
    "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/var/lib/kubelet", "/var/lib/libvirt",
    "/var/lib/tare", "/var/log/journal", "/var/mail", "/var/spool/cron", "/run/docker.sock", "/run/docker", "/run/containerd",
    "/run/crio", "/run/podman", "/run/libvirt", "/run/dbus", "/run/systemd/private", "/run/user",
};

/// Folders in which programs keep private files, each with the number of levels to search. A swap file is at the top.
const KEPT: [(&str, u32); 7] = tare_model::rows! {
    ("/", 1), ("/etc", 3), ("/opt", 2), ("/srv", 2), ("/var", 1), ("/var/lib", 2), ("/var/log", 1),
};

/// From this number of private files on, their folder is covered as a whole, because every cover is a mount.
const MOST_FILES: usize = 16;

/// The folder of an ssh server's host keys.
const SSH: &str = "/etc/ssh";

/// The list of this machine's users with their homes.
const USERS: &str = "/etc/passwd";

/// Suffixes of the files of a store: the store itself, SQLite's files next to it, and the lock.
const OF_STORE: [&str; 5] = ["", "-wal", "-shm", "-journal", ".lock"];

/// Variables that name an engine's socket, as `unix://PATH`.
pub(super) const ENGINES: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// Variables that name a private path.
const PLACES: [&str; 4] = ["HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "KUBECONFIG"];

/// Returns the private paths of this machine, absolute. The store may be anywhere.
pub(crate) fn paths(store: Option<&Path>) -> Vec<String> {
    let mut paths: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    paths.extend(host_keys());
    paths.extend(kept_by_root().iter().cloned());
    for name in ENGINES {
        let socket = vars::text(name);
        paths.extend(socket.and_then(|text| text.strip_prefix("unix://").map(str::to_owned)));
    }
    paths.extend(PLACES.iter().filter_map(|name| vars::text(name)));
    let own = homes().into_iter().chain(vars::state_folder());
    paths.extend(own.filter_map(text));
    if let Some(store) = store.and_then(|store| std::path::absolute(store).ok().and_then(text)) {
        paths.extend(OF_STORE.map(|suffix| format!("{store}{suffix}")));
    }
    paths.retain(|path| is_place(Path::new(path)));
    paths.sort();
    paths.dedup();
    paths
}

/// Returns what only root can read on this machine. The result of the first call is kept, because a start may be
/// timed. Empty if this process is not root.
pub(crate) fn kept_by_root() -> &'static [String] {
    static KEPT_BY_ROOT: OnceLock<Vec<String>> = OnceLock::new();
    KEPT_BY_ROOT.get_or_init(|| {
        let mut found = Vec::new();
        if files::own_uid() == 0 {
            for (folder, levels) in KEPT {
                add_closed(Path::new(folder), levels, &mut found);
            }
        }
        found.into_iter().filter_map(text).collect()
    })
}

fn text(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}

/// Adds what is neither readable nor searchable for others in a folder, down to this number of levels.
fn add_closed(folder: &Path, levels: u32, found: &mut Vec<PathBuf>) {
    let is_named = |path: &Path| KEPT.iter().any(|(name, _)| path == Path::new(name));
    let mut files_here = Vec::new();
    let names = match files::every_name(folder) {
        Ok(names) => names,
        Err(error) => {
            // Its contents cannot all be named, so the whole folder is hidden.
            if error.source.kind() != std::io::ErrorKind::NotFound && !is_named(folder) {
                found.push(folder.to_owned());
            }
            return;
        }
    };
    for name in names {
        let path = folder.join(name);
        match others_may(&path) {
            Some((true, false)) => found.push(path),
            Some((false, false)) => files_here.push(path),
            // A named one is searched separately.
            Some((true, true)) if levels > 1 && !is_named(&path) => {
                add_closed(&path, levels - 1, found);
            }
            _ => {}
        }
    }
    if files_here.len() < MOST_FILES || is_named(folder) {
        found.append(&mut files_here);
    } else {
        found.push(folder.to_owned());
    }
}

/// Whether this is a folder, and whether a user who is neither owner nor in its group may enter the folder or read the
/// file. `None` for links and special files, and where files have no such permissions.
fn others_may(path: &Path) -> Option<(bool, bool)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let found = path.symlink_metadata().ok()?;
        let is_folder = found.is_dir();
        let needed = if is_folder { 0o001 } else { 0o004 };
        (is_folder || found.is_file()).then(|| (is_folder, found.mode() & needed != 0))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Returns the homes of people from the list of users. The homes of service accounts are folders of programs.
fn homes() -> Vec<PathBuf> {
    let users = files::read_text(Path::new(USERS)).unwrap_or_default();
    homes_in(&users)
}

fn homes_in(users: &str) -> Vec<PathBuf> {
    let home = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let uid: u32 = fields.next()?.parse().ok()?;
        let home = PathBuf::from(fields.nth(2)?);
        let is_person = uid == 0 || (1_000..60_000).contains(&uid);
        (is_person && is_place(&home)).then_some(home)
    };
    users.lines().filter_map(home).collect()
}

/// Returns the existing private paths, each with whether it is a folder; paths below another one are omitted.
pub(crate) fn here(store: Option<&Path>) -> Vec<(String, bool)> {
    let mut here: Vec<(String, bool)> = Vec::new();
    for path in paths(store) {
        let place = Path::new(&path);
        let is_in = |above: &(String, bool)| above.1 && place.starts_with(&above.0);
        if place.exists() && !here.iter().any(is_in) {
            let is_folder = place.is_dir();
            here.push((path, is_folder));
        }
    }
    here
}

/// Whether a path can be covered: absolute, not the root (which is some users' home), and without `..`.
fn is_place(path: &Path) -> bool {
    let is_plain = !path
        .components()
        .any(|part| matches!(part, std::path::Component::ParentDir));
    path.is_absolute() && is_plain && path.parent().is_some()
}

/// Returns the private keys of this machine's ssh server.
fn host_keys() -> Vec<String> {
    let names = files::names(Path::new(SSH)).unwrap_or_default();
    let is_key = |name: &String| name.starts_with("ssh_host_") && name.ends_with("_key");
    names
        .into_iter()
        .filter(is_key)
        .map(|name| format!("{SSH}/{name}"))
        .collect()
}

/// Returns read-only bind mounts of the search path's folders that are in private places: the user's programs. For a
/// virtual environment or a version manager it is the whole folder, which they need.
pub(crate) fn programs(hidden: &[String]) -> Vec<Bind> {
    let path = vars::text("PATH").unwrap_or_default();
    let is_hidden = |folder: &Path| hidden.iter().any(|above| folder.starts_with(above));
    let mut shown: Vec<PathBuf> = path
        .split(':')
        .map(Path::new)
        .filter(|folder| is_place(folder) && is_hidden(folder) && folder.is_dir())
        .map(whole)
        // Neither a home nor a folder with Tare's own files.
        .filter(|folder| is_hidden(folder) && inside_of(folder).is_none())
        .collect();
    shown.sort();
    shown.dedup();
    let bind = |folder: PathBuf| {
        let path = text(folder)?;
        Some(Bind {
            source: path.clone(),
            target: path,
            read_only: true,
        })
    };
    shown.into_iter().filter_map(bind).collect()
}

fn whole(folder: &Path) -> PathBuf {
    let is_shims = folder.file_name().is_some_and(|name| name == "shims");
    match folder.parent() {
        Some(above) if is_shims || above.join("pyvenv.cfg").is_file() => above.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Returns this machine's private paths in these folders, each with whether the folder must be covered as a whole:
/// what this user cannot read may be readable for root inside.
pub fn places_in(folders: &[&str]) -> BTreeMap<String, bool> {
    let is_in = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let mut found = BTreeMap::new();
    for path in paths(None) {
        let mut ways = Path::new(&path).ancestors().filter(|path| is_in(path));
        // If a path cannot be inspected, the folder above it is covered.
        let _ = ways.find(|path| add_places(path, 3, &mut found));
    }
    let whole: Vec<String> = found
        .iter()
        .filter(|it| *it.1)
        .map(|it| it.0.clone())
        .collect();
    let is_below = |path: &Path, above: &String| path.starts_with(above) && path != above;
    found.retain(|path, _| !whole.iter().any(|above| is_below(Path::new(path), above)));
    found
}

/// Adds a file, or the files in a folder down to this depth. Adds the folder itself if not all files can be named or
/// if it is not open to all: the covers may be made by another user, who cannot reach beyond the folder. Returns
/// whether the path is completely covered.
fn add_places(path: &Path, depth: u32, found: &mut BTreeMap<String, bool>) -> bool {
    match files::kind(path) {
        Ok(_) => {}
        Err(error) => return error.source.kind() == std::io::ErrorKind::NotFound,
    }
    let Some(text) = path.to_str().filter(|text| !text.contains([':', ','])) else {
        return false;
    };
    if !path.is_dir() {
        // A dangling link exposes nothing.
        if path.exists() {
            found.insert(text.to_owned(), false);
        }
        return true;
    }
    let names = files::every_name(path)
        .ok()
        .filter(|_| depth > 0 && is_open(path));
    let mut below = BTreeMap::new();
    let mut is_covered = |name: &String| add_places(&path.join(name), depth - 1, &mut below);
    if names.is_some_and(|names| names.iter().all(&mut is_covered)) {
        found.append(&mut below);
    } else {
        found.insert(text.to_owned(), true);
    }
    true
}

/// Whether all users may list and enter a folder.
fn is_open(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        folder.metadata().is_ok_and(|it| it.mode() & 0o005 == 0o005)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        true
    }
}

/// Returns the private place that `folder` is, or contains: a home, or Tare's folder. A folder inside Tare's counts
/// too; one inside a home does not, because the user's work is there.
pub fn inside_of(folder: &Path) -> Option<PathBuf> {
    let real = |path: PathBuf| files::real(&path);
    let folder = files::real(folder);
    let names = files::names(Path::new("/home")).unwrap_or_default();
    let named = ["/root", "/home"].map(PathBuf::from).into_iter();
    let state = vars::state_folder().map(real);
    if let Some(state) = state.clone().filter(|state| folder.starts_with(state)) {
        return Some(state);
    }
    named
        .chain(names.iter().map(|name| Path::new("/home").join(name)))
        .chain(homes())
        .chain(vars::text("HOME").map(PathBuf::from))
        .map(real)
        .chain(state)
        .find(|place| is_place(place) && place.starts_with(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_root_nor_a_way_back_is_covered() {
        assert!(is_place(Path::new("/srv/x")));
        for path in ["/", "", "x", "/a/../b"] {
            assert!(!is_place(Path::new(path)), "{path}");
        }
        let paths = paths(Some(Path::new("/srv/own.sqlite")));
        for path in ["/etc/shadow", "/var/backups", "/srv/own.sqlite-wal"] {
            assert!(paths.iter().any(|found| found == path), "{path}");
        }
        // Independent of the name of the working directory.
        let own = std::path::absolute("own.sqlite").unwrap();
        let paths = super::paths(Some(Path::new("own.sqlite")));
        assert!(
            paths.iter().any(|found| Path::new(found) == own),
            "{paths:?}"
        );
    }

    #[test]
    fn homes_are_found_for_people_not_services() {
        let users = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n\
                     ann:x:1001:1001:Ann:/srv/people/ann:/bin/zsh\nbob:x:1002:1002:::\n\
                     nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\nall:x:1003:1003::/:/bin/sh\nbroken\n";
        let homes = homes_in(users);
        assert_eq!(homes, ["/root", "/srv/people/ann"].map(PathBuf::from));
    }

    #[cfg(unix)]
    #[test]
    fn closed_files_and_folders_are_found_by_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let allow = |name: &str, mode: u32| {
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in ["open/deep/deeper", "closed", "many"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let mut names: Vec<String> = [
            "open/key",
            "open/text",
            "open/deep/key",
            "open/deep/deeper/key",
            "closed/x",
        ]
        .map(str::to_owned)
        .to_vec();
        names.extend((0..MOST_FILES).map(|number| format!("many/key-{number}")));
        for name in &names {
            std::fs::write(at(name), "secret").unwrap();
            allow(name, 0o640);
        }
        allow("open/text", 0o644);
        allow("closed", 0o750);
        for name in ["open", "open/deep", "open/deep/deeper", "many"] {
            allow(name, 0o755);
        }
        let mut found = Vec::new();
        add_closed(place.path(), 3, &mut found);
        found.sort();
        let expected = ["closed", "many", "open/deep/key", "open/key"].map(at);
        assert_eq!(found, expected);
    }

    #[cfg(unix)]
    #[test]
    fn unlistable_or_closed_folder_is_masked_as_whole() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let allow = |folder: &Path, mode: u32| {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in [
            "plain/a/b/key",
            "deep/a/b/c/key",
            "odd/certs/there:5000/key",
            "closed/a/b/key",
        ] {
            files::create_folder(at(name).parent().unwrap()).unwrap();
            files::write(&at(name), b"secret").unwrap();
            for folder in at(name)
                .ancestors()
                .skip(1)
                .take(Path::new(name).components().count() - 1)
            {
                allow(folder, 0o755);
            }
        }
        allow(&at("closed/a"), 0o710);
        let covered = |name: &str| {
            let mut found = BTreeMap::new();
            assert!(add_places(&at(name), 3, &mut found));
            let whole = |(path, is_folder): (String, bool)| (PathBuf::from(path), is_folder);
            found.into_iter().map(whole).collect::<Vec<_>>()
        };
        assert_eq!(covered("plain"), [(at("plain/a/b/key"), false)]);
        assert_eq!(covered("deep"), [(at("deep/a/b/c"), true)]);
        assert_eq!(covered("odd"), [(at("odd/certs"), true)]);
        assert_eq!(covered("closed"), [(at("closed/a"), true)]);
        assert_eq!(covered("none"), []);
    }

    #[test]
    fn folder_above_homes_contains_them_inner_does_not() {
        assert_eq!(inside_of(Path::new("/home")), Some("/home".into()));
        assert!(inside_of(Path::new("/")).is_some());
        assert_eq!(inside_of(Path::new("/home/somebody/project/x")), None);
        assert_eq!(inside_of(Path::new("/usr")), None);
        let state = vars::state_folder().unwrap();
        assert_eq!(inside_of(&state.join("runs/another")), Some(state));
    }

    #[test]
    fn venv_is_shown_whole_other_folder_alone() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("venv/bin");
        files::create_folder(&bin).unwrap();
        assert_eq!(whole(&bin), bin);
        files::write(&home.path().join("venv/pyvenv.cfg"), b"").unwrap();
        assert_eq!(whole(&bin), home.path().join("venv"));
    }
}
