//! What of this machine's files is nobody's business inside an environment whose root is made of them.
//!
//! Whoever is root inside such a root reads what root may read. So homes, keys, password files, the sockets of
//! engines (which are root to whoever may write to them) and Tare's own files are covered there, and what is
//! wanted of them is shown on purpose: what a user binds, and the programs of the search path.
//! What it cannot see: secrets in other places, and what lies in a folder that is shown on purpose.

use std::path::{Path, PathBuf};

use tare_model::launch::Bind;

use crate::cx::{files, vars};

/// Folders and files that are private wherever they are; what a machine does not have is passed over.
const ALWAYS: [&str; 38] = [
    "/root",
    "/home",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/docker",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/ppp",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/kubelet",
    "/var/lib/libvirt",
    "/var/lib/tare",
    "/var/mail",
    "/var/spool/cron",
    "/run/docker.sock",
    "/run/docker",
    "/run/containerd",
    "/run/crio",
    "/run/podman",
    "/run/libvirt",
    "/run/dbus",
    "/run/systemd/private",
    "/run/user",
];

/// Where an ssh server keeps what it proves itself with.
const SSH: &str = "/etc/ssh";

/// Variables that name an engine's socket, as `unix://PATH`.
const ENGINES: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// Variables that name a private place.
const PLACES: [&str; 4] = ["HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "KUBECONFIG"];

/// The private places of this machine, absolute.
pub(crate) fn paths() -> Vec<String> {
    let mut paths: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    paths.extend(host_keys());
    for name in ENGINES {
        let socket = vars::text(name);
        paths.extend(socket.and_then(|text| text.strip_prefix("unix://").map(str::to_owned)));
    }
    paths.extend(PLACES.iter().filter_map(|name| vars::text(name)));
    let state = vars::state_folder().and_then(|folder| folder.to_str().map(str::to_owned));
    paths.extend(state);
    paths.retain(|path| is_place(Path::new(path)));
    paths.sort();
    paths.dedup();
    paths
}

/// Those that are here, with whether it is a folder; what lies in another of them is covered with that.
pub(crate) fn here() -> Vec<(String, bool)> {
    let mut here: Vec<(String, bool)> = Vec::new();
    for path in paths() {
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
        .filter(|folder| is_hidden(folder))
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

/// The private files of this machine that lie in these folders.
pub(crate) fn files_in(folders: &[&str]) -> Vec<String> {
    let is_in = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let mut found = Vec::new();
    for path in paths().into_iter().map(PathBuf::from) {
        if is_in(&path) {
            add_files(&path, 3, &mut found);
        }
    }
    found
}

/// Adds a file, or those in a folder and in so many levels of folders below it.
fn add_files(path: &Path, depth: u32, found: &mut Vec<String>) {
    if path.is_file() {
        let text = path.to_str().filter(|text| !text.contains([':', ',']));
        found.extend(text.map(str::to_owned));
    } else if depth > 0 {
        for name in files::names(path).unwrap_or_default() {
            add_files(&path.join(name), depth - 1, found);
        }
    }
}

/// The private place that `folder` is, or that lies in it: a home, or where Tare keeps its files.
pub(crate) fn inside_of(folder: &Path) -> Option<PathBuf> {
    let folder = files::canonical(folder).unwrap_or_else(|_| folder.to_owned());
    let homes = files::names(Path::new("/home")).unwrap_or_default();
    let homes = homes.iter().map(|name| Path::new("/home").join(name));
    let named = ["/root", "/home"].map(PathBuf::from);
    let own = vars::text("HOME").map(PathBuf::from);
    named
        .into_iter()
        .chain(homes)
        .chain(own)
        .chain(vars::state_folder())
        .map(|place| files::canonical(&place).unwrap_or(place))
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
        assert!(paths().iter().any(|path| path == "/etc/shadow"));
    }

    #[test]
    fn a_folder_above_homes_holds_them_and_one_in_a_home_does_not() {
        assert_eq!(inside_of(Path::new("/home")), Some("/home".into()));
        assert!(inside_of(Path::new("/")).is_some());
        assert_eq!(inside_of(Path::new("/home/somebody/project/x")), None);
        assert_eq!(inside_of(Path::new("/usr")), None);
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
