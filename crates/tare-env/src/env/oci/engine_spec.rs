//! Finds the specification that Docker used for a running container, in the state that containerd keeps.
//!
//! The state exists while the container runs, in a folder named after the container's id. The location of these
//! folders depends on how the engine was started, so the working directories of running shims are searched in
//! addition to the usual places: a shim's working directory is its container's folder.
//! Names are resolved through the files that the engine mounts into the container, which are in the same folder as
//! its own record.
//! Limits: engines on another machine or in a VM (Docker Desktop) keep their state there.

use crate::env::prelude::*;

use super::spec::Spec;
use crate::cx::processes::numbers_in;

/// containerd's folder names for the state of running tasks, by runtime version.
const TASKS: [&str; 2] = [
    "io.containerd.runtime.v2.task",
    "io.containerd.runtime.v1.linux",
];

/// Docker's containerd namespace.
const NAMESPACE: &str = "moby";

/// A specification with its container's id.
#[derive(Debug, Clone)]
pub(super) struct EngineSpec {
    pub(super) id: String,
    pub(super) spec: Spec,
}

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    id: String,
    name: Option<String>,
    path: PathBuf,
}

/// Returns the folders that hold running containers.
fn state_folders() -> BTreeSet<PathBuf> {
    let mut roots = vec![
        PathBuf::from("/run/docker/containerd/daemon"),
        PathBuf::from("/run/containerd"),
    ];
    if let Some(own) = vars::text("XDG_RUNTIME_DIR").map(PathBuf::from) {
        roots.push(own.join("docker/containerd/daemon"));
        roots.push(own.join("containerd"));
    }
    let usual = roots
        .iter()
        .flat_map(|root| TASKS.map(|task| root.join(task).join(NAMESPACE)));
    let shims = numbers_in(Path::new("/proc"))
        .into_iter()
        .filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok())
        .filter_map(|folder| tasks_folder(&folder));
    usual.chain(shims).filter(|path| path.is_dir()).collect()
}

/// Returns the parent of `folder`, if `folder` is a container's.
fn tasks_folder(folder: &Path) -> Option<PathBuf> {
    let above = folder.parent()?;
    let task = above.parent()?.file_name()?.to_str()?;
    (above.file_name()? == NAMESPACE && TASKS.contains(&task)).then(|| above.to_owned())
}

/// Returns the container's name from the engine's record, which is next to a file that the engine mounts into the
/// container.
fn name_of(id: &str, spec: &Spec) -> Option<String> {
    let record = spec
        .mounts
        .iter()
        .map(|mount| Path::new(&mount.source))
        .filter_map(Path::parent)
        .find(|folder| folder.file_name().is_some_and(|last| last == id))?
        .join("config.v2.json");
    let record: Value = serde_json::from_str(&files::read_text(&record).ok()?).ok()?;
    let name = record.get("Name")?.as_str()?;
    Some(name.trim_start_matches('/').to_owned())
}

/// Chooses by full id or name, then by the beginning of an id; `Err` gives the reason if there is none or several.
fn choose<'a>(wanted: &str, candidates: &'a [Candidate]) -> Result<&'a Candidate, String> {
    let exact = candidates
        .iter()
        .find(|one| one.id == wanted || one.name.as_deref() == Some(wanted));
    if let Some(one) = exact {
        return Ok(one);
    }
    let mut begin = candidates.iter().filter(|one| one.id.starts_with(wanted));
    match (begin.next(), begin.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(format!("several ids of containers begin with `{wanted}`")),
        (None, _) => Err(format!("no Docker container `{wanted}` is running here")),
    }
}

/// Returns the specification of the running container of this name or id.
pub(super) fn find(wanted: &str) -> Result<EngineSpec> {
    let mut candidates = Vec::new();
    let mut denied = None;
    for folder in state_folders() {
        let ids = match files::names(&folder) {
            Ok(ids) => ids,
            Err(error) => {
                denied = Some(error);
                continue;
            }
        };
        for id in ids {
            let path = folder.join(&id).join("config.json");
            // A container that is being created or removed has none.
            let Ok(text) = files::read_text(&path) else {
                continue;
            };
            let name = Spec::parse(&text).ok().and_then(|spec| name_of(&id, &spec));
            candidates.push(Candidate { id, name, path });
        }
    }
    let one = choose(wanted, &candidates).map_err(|why| {
        if candidates.is_empty()
            && let Some(error) = denied
        {
            return EnvError::denied(error.to_string(), "run as root");
        }
        let known: Vec<String> = candidates
            .iter()
            .map(|one| one.name.as_ref().unwrap_or(&one.id))
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        EnvError::absent(why, if known.is_empty() {
                "start it with `docker start` on this machine; while it runs its specification is there".into()
            } else {
                format!("running are {}", known.join(", "))
            })
    })?;
    let text = files::read_text(&one.path)?;
    let spec = Spec::parse(&text).map_err(|error| {
        EnvError::refused(
            format!("reading Docker's specification `{}`", one.path.display()),
            escaped(error.to_string()),
        )
    })?;
    Ok(EngineSpec {
        id: one.id.clone(),
        spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: &str, name: Option<&str>) -> Candidate {
        Candidate {
            id: id.into(),
            name: name.map(str::to_owned),
            path: PathBuf::new(),
        }
    }

    #[test]
    fn name_beats_id_prefix_and_ambiguous_prefix_fails() {
        let all = [
            candidate("abc1", Some("web")),
            candidate("abc2", None),
            candidate("d0", Some("abc")),
        ];
        assert_eq!(choose("abc", &all).unwrap().id, "d0");
        assert_eq!(choose("abc2", &all).unwrap().id, "abc2");
        assert_eq!(choose("web", &all).unwrap().id, "abc1");
        assert!(choose("ab", &all).unwrap_err().contains("several"));
        assert!(
            choose("x", &all)
                .unwrap_err()
                .contains("no Docker container")
        );
    }

    #[test]
    fn shim_folder_is_recognized_by_its_parent_folders() {
        let at = |text: &str| tasks_folder(Path::new(text));
        assert_eq!(
            at("/x/daemon/io.containerd.runtime.v2.task/moby/abc"),
            Some(PathBuf::from(
                "/x/daemon/io.containerd.runtime.v2.task/moby"
            ))
        );
        assert_eq!(at("/x/io.containerd.runtime.v2.task/k8s.io/abc"), None);
        assert_eq!(at("/x/other/moby/abc"), None);
        assert_eq!(at("/"), None);
    }
}
