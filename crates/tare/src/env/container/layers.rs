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
use tare_model::launch::Bind;
use tare_model::{Params, Value};

use super::super::EnvError;
use super::super::mechanism::Kind;
use super::super::own::{self, Bare, LIKE};
use tare_core::driver::container::DECLARED;

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
        let settings = bare(kept).with(LIKE, file.display().to_string());
        Ok(of(settings, without))
    }

    /// Reads them from there.
    pub(super) fn read(file: &str) -> Result<Self, EnvError> {
        own::kept(file, "the places of an image's files")
    }
}

/// The host's own files, in a copy that is written to in their place, which does without these differences; `kept` are
/// settings that protect the user ([`own::Own::bare`]).
pub fn host_files(without: Vec<String>, kept: &Params) -> Bare {
    of(bare(kept), without)
}

fn of(settings: Params, without: Vec<String>) -> Bare {
    Bare {
        driver: "container".to_owned(),
        settings,
        without,
    }
}

/// Settings without every mechanism that costs something and keeps nothing from being changed. A network namespace with a
/// loopback device stays unless `kept` says otherwise: the command reaches no service of this machine.
fn bare(kept: &Params) -> Params {
    let mechanisms = DECLARED.mechanisms.all.iter();
    let off = mechanisms
        .filter(|mechanism| !matches!(mechanism.kind, Kind::Root | Kind::Capabilities))
        .flat_map(|mechanism| mechanism.off);
    let off = off.fold(Params::new(), |settings, (name, set)| {
        settings.with(name, *set)
    });
    let kept = kept
        .0
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()));
    std::iter::once(("network", Value::Text("none".to_owned())))
        .chain(kept)
        .fold(off, |settings, (name, value)| settings.with(name, value))
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
