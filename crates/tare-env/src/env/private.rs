//! What of this machine's files is nobody's business inside an environment whose root is made of them.
//!
//! Whoever is root inside such a root reads what root may read. So homes, keys, password files, the sockets of
//! engines (which are root to whoever may write to them) and Tare's own files are covered there, and what is
//! wanted of them is shown on purpose: what a user binds, and the programs of the search path.
//! For root a list is not enough: what a machine keeps from all but root is found by its mode, where programs keep such
//! things. An ordinary user's container reads no more than that user.
//! What it cannot see: secrets in other places or deeper, and what lies in a folder that is shown on purpose.

use crate::env::prelude::*;

use std::sync::OnceLock;

/// Folders and files that are private wherever they are; what a machine does not have is passed over.
const ALWAYS: [&str; 40] = tare_model::rows! {
    "/root", "/home", "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd",
    "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt",
    "/etc/krb5.keytab", "/etc/docker", "/etc/kubernetes", "/etc/rancher", "/etc/wireguard", "/etc/openvpn",
    "/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/etc/ppp", "/var/backups",
    "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/var/lib/kubelet", "/var/lib/libvirt",
    "/var/lib/tare", "/var/log/journal", "/var/mail", "/var/spool/cron", "/run/docker.sock", "/run/docker", "/run/containerd",
    "/run/crio", "/run/podman", "/run/libvirt", "/run/dbus", "/run/systemd/private", "/run/user",
};

/// Where programs keep what is not for everybody, each with how many levels of it are looked at. A swap file lies at
/// the top.
const KEPT: [(&str, u32); 7] = tare_model::rows! {
    ("/", 1), ("/etc", 3), ("/opt", 2), ("/srv", 2), ("/var", 1), ("/var/lib", 2), ("/var/log", 1),
};

/// From so many private files on their folder is covered as a whole: every cover is a mount.
const MOST_FILES: usize = 16;

/// Where an ssh server keeps what it proves itself with.
const SSH: &str = "/etc/ssh";

/// Where the users of this machine are listed with their homes.
const USERS: &str = "/etc/passwd";

/// What a store consists of: its own file, those that SQLite puts beside it, and the lock.
const OF_STORE: [&str; 5] = ["", "-wal", "-shm", "-journal", ".lock"];

/// Variables that name an engine's socket, as `unix://PATH`.
const ENGINES: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// Variables that name a private place.
const PLACES: [&str; 4] = ["HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "KUBECONFIG"];

/// The private places of this machine, absolute. The store may lie anywhere.
pub(crate) fn paths(store: Option<&Path>) -> Vec<String> {
    let mut paths: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    paths.extend(host_keys());
    paths.extend(kept_by_root().iter().cloned());
    for name in ENGINES {
        let socket = vars::text(name);
        paths.extend(socket.and_then(|text| text.strip_prefix("unix://").map(str::to_owned)));
    }
    paths.extend(PLACES.iter().filter_map(|name| vars::text(name)));
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    paths.extend(
        homes()
            .into_iter()
            .chain(vars::state_folder())
            .filter_map(text),
    );
    if let Some(store) = store.and_then(|store| std::path::absolute(store).ok().and_then(text)) {
        paths.extend(OF_STORE.map(|suffix| format!("{store}{suffix}")));
    }
    paths.retain(|path| is_place(Path::new(path)));
    paths.sort();
    paths.dedup();
    paths
}

/// What this machine keeps from all but root, as it was when this process looked first: a start that is timed does not
/// look again. Nothing where this is not root.
pub(crate) fn kept_by_root() -> &'static [String] {
    static KEPT_BY_ROOT: OnceLock<Vec<String>> = OnceLock::new();
    KEPT_BY_ROOT.get_or_init(|| {
        let mut found = Vec::new();
        if files::own_uid() == 0 {
            for (folder, levels) in KEPT {
                add_closed(Path::new(folder), levels, &mut found);
            }
        }
        let text = |path: PathBuf| path.into_os_string().into_string().ok();
        found.into_iter().filter_map(text).collect()
    })
}

/// Adds what in a folder, and in so many levels of it, others than its owner's group may not read.
fn add_closed(folder: &Path, levels: u32, found: &mut Vec<PathBuf>) {
    let is_named = |path: &Path| KEPT.iter().any(|(name, _)| path == Path::new(name));
    let mut files_here = Vec::new();
    let names = match files::every_name(folder) {
        Ok(names) => names,
        Err(error) => {
            // Not all that is in it can be named, so that nothing of it is shown.
            if error.source.kind() != std::io::ErrorKind::NotFound && !is_named(folder) {
                found.push(folder.to_owned());
            }
            return;
        }
    };
    for name in names {
        let path = folder.join(name);
        match others_may(&path) {
            Others::Nothing { is_folder: true } => found.push(path),
            Others::Nothing { is_folder: false } => files_here.push(path),
            // Looked at by itself.
            Others::Enter if is_named(&path) => {}
            Others::Enter if levels > 1 => add_closed(&path, levels - 1, found),
            Others::Enter | Others::Read => {}
        }
    }
    if files_here.len() < MOST_FILES || is_named(folder) {
        found.append(&mut files_here);
    } else {
        found.push(folder.to_owned());
    }
}

/// What somebody may do with a file or folder who is neither its owner nor of its group.
enum Others {
    /// Read the file, or follow the link; what is no plain file is passed over too.
    Read,
    /// Come to what lies in the folder.
    Enter,
    Nothing {
        is_folder: bool,
    },
}

fn others_may(path: &Path) -> Others {
    #[cfg(unix)]
    if let Ok(found) = path.symlink_metadata() {
        use std::os::unix::fs::MetadataExt as _;
        let is_folder = found.is_dir();
        return match (is_folder, found.mode() & 0o007) {
            (true, mode) if mode & 0o001 != 0 => Others::Enter,
            (false, _) if !found.is_file() => Others::Read,
            (false, mode) if mode & 0o004 != 0 => Others::Read,
            _ => Others::Nothing { is_folder },
        };
    }
    let _ = path;
    Others::Read
}

/// The homes of people, as the list of users has them. Accounts of services have their programs' folders for homes.
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

/// Those that are here, with whether it is a folder; what lies in another of them is covered with that.
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

/// Whether this can be covered: not the root, as the home of some is, and no way back.
fn is_place(path: &Path) -> bool {
    let is_plain = !path
        .components()
        .any(|part| matches!(part, std::path::Component::ParentDir));
    path.is_absolute() && is_plain && path.parent().is_some()
}

/// The private keys of this machine's ssh server.
fn host_keys() -> Vec<String> {
    let names = files::names(Path::new(SSH)).unwrap_or_default();
    let is_key = |name: &String| name.starts_with("ssh_host_") && name.ends_with("_key");
    names
        .into_iter()
        .filter(is_key)
        .map(|name| format!("{SSH}/{name}"))
        .collect()
}

/// The folders of the search path that lie in private places, to be shown there read-only: the programs that a
/// user has for himself. Of a virtual environment and of a version manager it is the whole, which they need.
pub(crate) fn programs(hidden: &[String]) -> Vec<Bind> {
    let path = vars::text("PATH").unwrap_or_default();
    let is_hidden = |folder: &Path| hidden.iter().any(|above| folder.starts_with(above));
    let mut shown: Vec<PathBuf> = path
        .split(':')
        .map(Path::new)
        .filter(|folder| is_place(folder) && is_hidden(folder) && folder.is_dir())
        .map(whole)
        // Not a home itself, nor one that Tare's own files lie in.
        .filter(|folder| is_hidden(folder) && inside_of(folder).is_none())
        .collect();
    shown.sort();
    shown.dedup();
    let bind = |folder: PathBuf| {
        let path = folder.into_os_string().into_string().ok()?;
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

/// The private places of this machine that lie in these folders, each with whether it is a folder that has to be
/// covered as a whole: what this user cannot look into may be open to whoever is root inside.
pub fn places_in(folders: &[&str]) -> BTreeMap<String, bool> {
    let is_in = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let mut found = BTreeMap::new();
    for path in paths(None) {
        let mut ways = Path::new(&path).ancestors().filter(|path| is_in(path));
        // Where it cannot even be looked at, what it lies in is covered.
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

/// Adds a file, or those in a folder and in so many levels of folders below it, or the folder itself where not all
/// of them can be named or it is not open to all: whoever makes the cover may be somebody else than who looks here,
/// and comes no further than to the folder. Whether nothing of it is left open by that.
fn add_places(path: &Path, depth: u32, found: &mut BTreeMap<String, bool>) -> bool {
    match files::kind(path) {
        Ok(_) => {}
        Err(error) => return error.source.kind() == std::io::ErrorKind::NotFound,
    }
    let Some(text) = path.to_str().filter(|text| !text.contains([':', ','])) else {
        return false;
    };
    if !path.is_dir() {
        // A link that leads nowhere shows nothing.
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

/// Whether everybody may look into a folder and come to what lies in it.
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

/// The private place that `folder` is, that lies in it, or that it lies in: a home (in one lies a user's work), or
/// where Tare keeps its files.
pub fn inside_of(folder: &Path) -> Option<PathBuf> {
    let real = |path: PathBuf| files::canonical(&path).unwrap_or(path);
    let folder = real(folder.to_owned());
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
        // Whatever the working directory is called.
        let own = std::path::absolute("own.sqlite").unwrap();
        let paths = super::paths(Some(Path::new("own.sqlite")));
        assert!(
            paths.iter().any(|found| Path::new(found) == own),
            "{paths:?}"
        );
    }

    #[test]
    fn people_have_homes_wherever_they_are_and_services_have_none() {
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
    fn what_cannot_be_named_file_by_file_or_is_not_open_to_all_is_covered_as_a_whole() {
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
    fn a_folder_above_homes_holds_them_and_one_in_a_home_does_not() {
        assert_eq!(inside_of(Path::new("/home")), Some("/home".into()));
        assert!(inside_of(Path::new("/")).is_some());
        assert_eq!(inside_of(Path::new("/home/somebody/project/x")), None);
        assert_eq!(inside_of(Path::new("/usr")), None);
        let state = vars::state_folder().unwrap();
        assert_eq!(inside_of(&state.join("runs/another")), Some(state));
    }

    #[test]
    fn a_virtual_environment_is_shown_as_a_whole_and_another_folder_alone() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("venv/bin");
        files::create_folder(&bin).unwrap();
        assert_eq!(whole(&bin), bin);
        files::write(&home.path().join("venv/pyvenv.cfg"), b"").unwrap();
        assert_eq!(whole(&bin), home.path().join("venv"));
    }
}
