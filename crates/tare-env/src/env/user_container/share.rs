//! The user's volumes and folders in a container's configuration.
//!
//! Pure, except for links that lead to sockets on this machine.
//! Limits: volumes of other containers (`VolumesFrom`) are not included.

use serde_json::Value;

use super::sockets::steers;
use crate::env::text::{entries_of, texts_of};

/// A volume or folder in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    /// A path on the engine's machine, or a volume's name; empty for a new volume.
    pub(crate) source: String,
    /// The path inside.
    pub(crate) target: String,
    pub(crate) may_write: bool,
}

impl Share {
    pub(crate) fn of_bind(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let (first, second) = (words.next()?, words.next());
        let options = words.next().unwrap_or_default();
        Some(match second {
            Some(target) => Self {
                source: first.to_owned(),
                target: target.to_owned(),
                // Writes to an overlay (`O`) are discarded with it.
                may_write: !options
                    .split(',')
                    .any(|option| matches!(option, "ro" | "O")),
            },
            None => Self {
                source: String::new(),
                target: first.to_owned(),
                may_write: true,
            },
        })
    }

    pub(crate) fn of_mount(mount: &Value) -> Option<Self> {
        let text = |name: &str| mount[name].as_str().unwrap_or_default().to_owned();
        matches!(mount["Type"].as_str(), Some("bind" | "volume")).then(|| Self {
            source: text("Source"),
            target: text("Target"),
            may_write: mount["ReadOnly"] != true,
        })
    }

    /// Whether it is a socket that controls the host.
    pub(crate) fn steers(&self) -> bool {
        self.is_folder() && steers(&self.source)
    }

    /// Whether it is a path on the engine's machine rather than a volume.
    pub(crate) fn is_folder(&self) -> bool {
        self.source.starts_with('/')
    }
}

/// Returns the shares of a configuration.
pub(crate) fn shares(body: &Value) -> Vec<Share> {
    let host = &body["HostConfig"];
    let binds = texts_of(&host["Binds"]).filter_map(Share::of_bind);
    binds
        .chain(entries_of(&host["Mounts"]).filter_map(Share::of_mount))
        .collect()
}
