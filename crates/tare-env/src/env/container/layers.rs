//! The files of another root as a bare process: an image's layers below an overlay, with every mechanism off that can be.
//!
//! A driver that has an image's files lists where they lie in a file of the run's own, with the variables that the image
//! sets, which may be nobody's business; an arm is started over them ([`super::settings`]). They are only read: what is
//! written goes into a layer of the instance's own, and with it. For the same reason the namespaces stay, and the
//! capabilities are those of a container: what somebody wrote for a container is to do to this machine what it could do
//! there, and these cost nothing while it runs.
//! What it cannot see: the user that an image names; here root is who runs it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tare_model::Params;
use tare_model::launch::Bind;

use super::super::EnvError;
use super::super::own::{self, Bare, LIKE};
use tare_core::driver::container::host_files;

/// A root that is not the host's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::env) struct Layers {
    /// Folders, the uppermost first.
    pub(in crate::env) lower: Vec<String>,
    /// Variables that every process inside has.
    pub(in crate::env) variables: BTreeMap<String, String>,
    /// What of the host is shown inside.
    pub(in crate::env) binds: Vec<Bind>,
}

impl Layers {
    /// Keeps them in a file that nobody else reads; the arm over them, which does without these differences.
    pub(in crate::env) fn kept(
        &self,
        file: &Path,
        without: Vec<String>,
        kept: &Params,
    ) -> Result<Bare, EnvError> {
        own::keep(file, self)?;
        let mut files = host_files(without, kept);
        files.settings = files.settings.with(LIKE, file.display().to_string());
        Ok(files)
    }

    /// Reads them from there.
    pub(super) fn read(file: &str) -> Result<Self, EnvError> {
        own::kept(file, "the places of an image's files")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Driver as _, container::Container};
    use tare_model::ArmId;

    #[test]
    fn bare_process_has_only_loopback_and_writes_to_a_layer() {
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
