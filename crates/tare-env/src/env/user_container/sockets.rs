//! Finds sockets that control the host: engines, hypervisors, the system bus and the service manager.
//!
//! By name in any folder, and by path if the name is not specific.
//! Limits: a program that forwards such a socket under another name is not recognized.

use crate::env::prelude::*;
use crate::env::private::ENGINES;

/// Names of sockets that control the host, in any folder.
const NAMES: [&str; 23] = tare_model::rows! {
    "docker.sock", "podman.sock", "containerd.sock", "containerd.sock.ttrpc", "crio.sock", "cri-dockerd.sock",
    "dockershim.sock", "buildkitd.sock", "kubelet.sock", "libvirt-sock", "libvirt-admin-sock",
    "virtqemud-sock", "virtqemud-admin-sock", "virtlxcd-sock", "system_bus_socket", "snapd.socket",
    "snapd-snap.socket", "multipathd.socket", "lxd.socket", "incus.socket", "nomad.sock", "tailscaled.sock",
    "cockpit.sock",
};

/// Paths of such sockets with unspecific names, and usual paths of the others. `*` is any one name.
const PLACES: [&str; 24] = tare_model::rows! {
    "/run/docker.sock", "/run/docker/docker.sock", "/run/podman/podman.sock",
    "/run/containerd/containerd.sock", "/run/containerd/containerd.sock.ttrpc",
    "/run/k3s/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock",
    "/run/buildkit/buildkitd.sock", "/run/libvirt/libvirt-sock", "/run/libvirt/libvirt-admin-sock",
    "/run/libvirt/virtqemud-sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/snapd.socket",
    "/run/snapd-snap.socket", "/run/user/*/docker.sock", "/run/user/*/podman/podman.sock", "/run/user/*/bus",
    "/run/user/*/systemd/private", "/home/*/.docker/run/docker.sock", "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket", "/var/snap/lxd/common/lxd/unix.socket",
};

/// Whether the socket at a path controls the host, by its name or by what the path resolves to here.
pub(super) fn steers(path: &str) -> bool {
    let path = Path::new(path);
    let real = files::canonical(path).unwrap_or_else(|_| path.to_owned());
    [path, &real].into_iter().any(is_steering)
}

fn is_steering(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let fits = |place: &str| {
        let mut parts = Path::new(place).components();
        let mut names = path.components();
        parts.all(|part| {
            let name = names.next();
            name.is_some_and(|name| part.as_os_str() == "*" || part == name)
        }) && names.next().is_none()
    };
    name.is_some_and(|name| NAMES.contains(&name)) || PLACES.iter().any(|place| fits(place))
}

/// Whether sockets that control the host are usually below a folder, on any machine.
pub(super) fn may_hold_sockets(folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    // On most machines `/var/run` is a link to `/run`.
    let folder = match folder.strip_prefix("/var/run") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/run{rest}"),
        _ => folder.to_owned(),
    };
    let mut places = PLACES.iter();
    places.any(|place| {
        let mut parts = Path::new(place).components();
        Path::new(&folder).components().all(|name| {
            parts
                .next()
                .is_some_and(|part| part.as_os_str() == "*" || part == name)
        })
    })
}

/// Returns the paths of this machine's controlling sockets, with links resolved.
pub(super) fn places() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for place in PLACES {
        match place.split_once("/*/") {
            Some((above, below)) => {
                let names = files::names(Path::new(above)).unwrap_or_default();
                found.extend(
                    names
                        .iter()
                        .map(|name| Path::new(above).join(name).join(below)),
                );
            }
            None => found.push(PathBuf::from(place)),
        }
    }
    for name in ENGINES {
        let socket = vars::text(name);
        found.extend(socket.and_then(|text| text.strip_prefix("unix://").map(PathBuf::from)));
    }
    found
        .iter()
        .filter_map(|path| files::canonical(path).ok())
        .collect()
}

/// Levels of subfolders that are searched for sockets by name.
const DEEPEST: u32 = 2;

/// Returns the controlling sockets below a folder of this machine, by relative path; `known` are the paths of such.
pub(super) fn sockets_below(folder: &Path, known: &[PathBuf]) -> Vec<String> {
    let folder = files::canonical(folder).unwrap_or_else(|_| folder.to_owned());
    let mut found = Vec::new();
    named_sockets(&folder, DEEPEST, &mut found);
    found.extend(
        known
            .iter()
            .filter(|place| place.starts_with(&folder))
            .cloned(),
    );
    let below = found
        .iter()
        .filter_map(|place| place.strip_prefix(&folder).ok()?.to_str());
    let mut below: Vec<String> = below
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    below.sort();
    below.dedup();
    below
}

/// Adds sockets of such names in a folder and its subfolders; links are not followed.
fn named_sockets(folder: &Path, deepest: u32, found: &mut Vec<PathBuf>) {
    // The kernel's own file systems hold no sockets, and many files.
    if ["/proc", "/sys"].iter().any(|top| folder.starts_with(top)) {
        return;
    }
    for name in files::names(folder).unwrap_or_default() {
        let path = folder.join(&name);
        match files::kind(&path) {
            Ok(files::Kind::Other) if NAMES.contains(&name.as_str()) => found.push(path),
            Ok(files::Kind::Folder { .. }) if deepest > 0 => {
                named_sockets(&path, deepest - 1, found);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_socket_and_its_folders_are_recognized() {
        for path in [
            "/var/run/docker.sock",
            "/srv/proxy/docker.sock",
            "/run/user/1000/bus",
            "/run/systemd/private",
            "/var/lib/incus/unix.socket",
        ] {
            assert!(steers(path), "{path}");
        }
        for path in [
            "/run/app/bus",
            "/srv/mysql.sock",
            "/run",
            "/run/user/1000/x/bus",
        ] {
            assert!(!steers(path), "{path}");
        }
        for folder in [
            "/",
            "/run",
            "/var/run/",
            "/run/podman",
            "/var/lib",
            "/home",
            "/run/user/1",
        ] {
            assert!(may_hold_sockets(folder), "{folder}");
        }
        for folder in ["/srv", "/home/me/work", "/var/lib/mysql", "/runner"] {
            assert!(!may_hold_sockets(folder), "{folder}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn sockets_are_found_by_name_and_place_through_links() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().join("real");
        std::fs::create_dir_all(real.join("a/b")).unwrap();
        let _named = std::os::unix::net::UnixListener::bind(real.join("a/docker.sock")).unwrap();
        let _placed = std::os::unix::net::UnixListener::bind(real.join("a/b/odd")).unwrap();
        std::fs::write(real.join("podman.sock"), "no socket").unwrap();
        std::os::unix::fs::symlink(&real, place.path().join("link")).unwrap();
        let known = [real.join("a/b/odd"), "/elsewhere/x".into()];
        let below = sockets_below(&place.path().join("link"), &known);
        assert_eq!(below, ["a/b/odd", "a/docker.sock"]);
    }
}
