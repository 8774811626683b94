//! Runs a bare process on another root: an image's layers below an overlay, with as many mechanisms off as possible.
//!
//! A driver that has an image's files lists their paths in a private file of the run, together with the image's
//! variables, which may be secret; an arm is started on them ([`super::settings`]). The layers are only read: writes
//! go into a layer of the instance, which is removed with it. For the same reason the namespaces stay, and the
//! capabilities are those of a container: code written for a container must not be able to do more to this machine
//! than it could there. Neither slows it down while it runs.
//! Limits: the user that an image names is ignored; the process runs as root.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tare_model::Params;
use tare_model::launch::Bind;

use super::super::EnvError;
use super::super::user_container::{self, Bare, LIKE};
use tare_core::driver::container::host_files;

/// A root other than the host's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Layers {
    /// Folders, the uppermost first.
    pub(crate) lower: Vec<String>,
    /// Variables of every process inside.
    pub(crate) variables: BTreeMap<String, String>,
    /// Files and folders of the host that are mounted inside.
    pub(crate) binds: Vec<Bind>,
}

impl Layers {
    /// Writes them to a private file and returns the arm on them, which lacks the differences in `without`.
    pub(crate) fn kept(
        &self,
        file: &Path,
        without: Vec<String>,
        kept: &Params,
    ) -> Result<Bare, EnvError> {
        user_container::keep(file, self)?;
        let mut files = host_files(without, kept);
        files.settings = files.settings.with(LIKE, file.display().to_string());
        Ok(files)
    }

    /// Reads them from that file.
    pub(super) fn read(file: &str) -> Result<Self, EnvError> {
        user_container::kept(file, "the places of an image's files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Driver as _, container::Container};
    use tare_model::ArmId;

    #[test]
    fn bare_process_has_loopback_only_and_writes_to_layer() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("layers.json");
        let layers = Layers {
            lower: vec!["/layer".into()],
            variables: BTreeMap::from([("PATH".into(), "/bin".into())]),
            ..Layers::default()
        };
        let none = Params::new();
        let bare = layers.kept(&file, vec!["cpus".into()], &none).unwrap();
        let path = file.display().to_string();
        assert_eq!(Layers::read(&path).unwrap(), layers);
        for settings in [&bare.settings, &host_files(Vec::new(), &none).settings] {
            assert_eq!(settings.text("network"), Some("none"));
            assert_eq!(settings.text("seccomp"), Some("unconfined"));
            assert_eq!(settings.text("rootfs"), None);
            Container
                .configure(ArmId::new("x").unwrap(), settings)
                .unwrap();
        }
        let kept = Params::new()
            .with("network", "host")
            .with("cgroup", true)
            .with("pids", 69)
            .with("no_new_privileges", true)
            .with("caps", "none");
        let settings = host_files(Vec::new(), &kept).settings;
        assert_eq!(settings.text("network"), Some("host"));
        Container
            .configure(ArmId::new("x").unwrap(), &settings)
            .unwrap();
        let error = Layers::read("/nowhere.json").unwrap_err();
        assert!(error.hint().unwrap().contains("ask again"), "{error}");
    }
}
