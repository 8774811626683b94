//! Inspects the machine of podman's containers through podman.
//!
//! Limits: containers of other users' podmans are not seen.

use crate::env::prelude::*;

use super::super::caller::Caller;
use crate::env::user_container::machine::{Machine, mounts_of, writes_to};
use crate::env::user_container::share::Share;

/// Returns podman's description of a container.
pub(super) fn inspected(caller: Caller<'_>, name: &str) -> Result<Value> {
    match caller.inspect("container", name) {
        Err(EnvError::Refused { .. }) if !caller.exists("container", name)? => {
            Err(EnvError::absent(
                format!(
                    "there is no container `{}` in the podman{} that is asked",
                    printable(name),
                    caller.access.owner()
                ),
                "`podman ps --all` lists them; `--set as=USER` asks another user's podman",
            ))
        }
        other => other,
    }
}

/// Whether podman can overlay a share: it can overlay folders and volumes.
pub(super) fn can_be_overlaid(share: &Share) -> bool {
    let is_folder = || {
        matches!(
            files::kind(Path::new(&share.source)),
            Ok(files::Kind::Folder { .. })
        )
    };
    !share.source.is_empty() && !share.steers() && (!share.is_folder() || is_folder())
}

/// The machine on which podman's containers run. Podman cannot mount a folder read-only recursively.
impl Machine for Caller<'_> {
    fn has(&self, share: &Share) -> bool {
        if share.is_folder() {
            return files::kind(Path::new(&share.source)).is_ok();
        }
        // A volume that cannot be inspected is not replaced: then the line itself fails.
        let asked = self.exists("volume", &share.source);
        asked.unwrap_or(true)
    }

    fn place(&self, share: &Share) -> Option<String> {
        if share.is_folder() {
            return Some(share.source.clone());
        }
        let arguments = ["volume", "inspect", "--", &share.source];
        let found = self.ask("inspect the volume", &arguments).ok()?;
        Some(found[0]["Mountpoint"].as_str()?.to_owned())
    }

    fn mounts_of(&self, container: &str) -> Option<Vec<Value>> {
        mounts_of(&inspected(*self, container).ok()?["Mounts"])
    }

    fn is_here(&self) -> bool {
        true
    }
}

/// Returns the running containers that write to a path.
pub(crate) fn writers(caller: Caller<'_>, path: &Path) -> Vec<String> {
    let running = caller.ask("list containers", &["ps", "--format=json"]);
    let running = running.ok().and_then(|found| found.as_array().cloned());
    let writes = |mount: &Value| {
        let source = Path::new(mount["Source"].as_str().unwrap_or_default());
        writes_to(source, mount["RW"] == true, path)
    };
    let names = running.unwrap_or_default().into_iter().filter_map(|found| {
        let name = found["Names"][0].as_str().or(found["Id"].as_str())?;
        let found = inspected(caller, name).ok()?;
        let mut mounts = found["Mounts"].as_array()?.iter();
        mounts
            .any(writes)
            .then(|| format!("the container `{}` of podman", printable(name)))
    });
    names.collect()
}
