//! Writes the resulting shares as the engine's binds and mounts: unchanged, read-only, covered or omitted.
//!
//! Pure: the caller decides how a share is mounted.
//! Limits: mount options unknown today are passed through.

use serde_json::{Value, json};

use super::super::share::Share;

/// The binds and mounts of a copy.
#[derive(Default)]
pub(super) struct CopyMounts {
    pub(super) binds: Vec<Value>,
    pub(super) mounts: Vec<Value>,
}

impl CopyMounts {
    pub(super) fn bind(&mut self, text: &str, share: &Share, shown: SharedMount) {
        let bind = match shown.fate {
            ShareMode::AsItIs => without_changes(text),
            // With a new overlay of the arm, not one that the user named.
            ShareMode::ReadOnly(_) if is_overlaid(text) => overlaid(share),
            ShareMode::ReadOnly(Below::Nothing) => read_only(text, share),
            ShareMode::ReadOnly(below) => {
                let mount = json!({"Type": "bind", "Source": share.source, "Target": share.target});
                self.mounts.push(closed(mount, below));
                return self.cover(share, shown.sockets);
            }
            ShareMode::Over => overlaid(share),
            ShareMode::New => return self.mounts.push(new_volume(share)),
            ShareMode::Gone => return,
        };
        self.binds.push(Value::String(bind));
        self.cover(share, shown.sockets);
    }

    pub(super) fn mount(&mut self, mount: Value, share: &Share, shown: SharedMount) {
        match shown.fate {
            ShareMode::AsItIs => self.mounts.push(mount),
            ShareMode::ReadOnly(below) => self.mounts.push(closed(mount, below)),
            ShareMode::Over => self.binds.push(Value::String(overlaid(share))),
            ShareMode::New => return self.mounts.push(new_volume(share)),
            ShareMode::Gone => return,
        }
        self.cover(share, shown.sockets);
    }

    /// Covers sockets in a folder with `/dev/null`.
    fn cover(&mut self, share: &Share, sockets: Vec<String>) {
        let target = share.target.trim_end_matches('/');
        self.mounts.extend(sockets.into_iter().map(|socket| {
            json!({"Type": "bind", "Source": "/dev/null", "Target": format!("{target}/{socket}"), "ReadOnly": true})
        }));
    }
}

/// Makes a mount read-only, including the mounts below it.
fn closed(mut mount: Value, below: Below) -> Value {
    mount["ReadOnly"] = Value::Bool(true);
    if mount["Type"] == "volume" {
        // An empty volume would be filled with the image's files there.
        mount["VolumeOptions"]["NoCopy"] = Value::Bool(true);
    }
    let how = match below {
        Below::Nothing => {
            // Later mounts stay outside.
            if mount["BindOptions"]["Propagation"].is_string() {
                mount["BindOptions"]["Propagation"] = json!("rprivate");
            }
            return mount;
        }
        Below::ReadOnly => "ReadOnlyForceRecursive",
        Below::Hidden => "NonRecursive",
    };
    mount["BindOptions"] = json!({"Propagation": "rprivate", how: true});
    mount
}

fn new_volume(share: &Share) -> Value {
    json!({"Type": "volume", "Target": share.target})
}

/// How a share is mounted.
pub(super) struct SharedMount {
    pub(super) fate: ShareMode,
    /// The sockets in it to cover, by relative path.
    pub(super) sockets: Vec<String>,
}

impl From<ShareMode> for SharedMount {
    fn from(fate: ShareMode) -> Self {
        Self {
            fate,
            sockets: Vec::new(),
        }
    }
}

pub(super) enum ShareMode {
    AsItIs,
    ReadOnly(Below),
    /// An empty volume of the arm.
    New,
    /// Unchanged, below an overlay of the arm.
    Over,
    Gone,
}

/// What happens to mounts below a folder that is mounted read-only; by itself, an engine makes only the topmost mount
/// read-only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    /// There are none.
    Nothing,
    /// They are read-only too.
    ReadOnly,
    /// They are not visible.
    Hidden,
}

fn overlaid(share: &Share) -> String {
    format!("{}:{}:O", share.source, share.target)
}

/// Returns a bind without the options that change the user's files themselves: labels and owners.
fn without_changes(text: &str) -> String {
    with_options(text, |option| !matches!(option, "" | "z" | "Z" | "U"), None)
}

/// Like `without_changes`, but read-only: no files of the image are copied into it, and later mounts in it stay
/// outside.
fn read_only(text: &str, share: &Share) -> String {
    let is_kept = |option: &str| {
        let changes = matches!(
            option,
            "" | "z" | "Z" | "U" | "rw" | "ro" | "copy" | "nocopy"
        );
        let spreads = ["shared", "slave", "private", "unbindable"];
        !changes && !spreads.contains(&option.trim_start_matches('r'))
    };
    let volume = if share.is_folder() { "ro" } else { "ro,nocopy" };
    with_options(text, is_kept, Some(volume))
}

/// Whether the engine mounts the bind as an overlay.
fn is_overlaid(text: &str) -> bool {
    let mut options = text
        .split(':')
        .nth(2)
        .into_iter()
        .flat_map(|it| it.split(','));
    options.any(|option| option == "O")
}

fn with_options(text: &str, is_kept: impl Fn(&str) -> bool, more: Option<&str>) -> String {
    let mut words = text.splitn(3, ':');
    let (source, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let options = words.next().unwrap_or_default();
    let kept = options.split(',').filter(|option| is_kept(option));
    let options: Vec<&str> = kept.chain(more).collect();
    if options.is_empty() {
        format!("{source}:{target}")
    } else {
        format!("{source}:{target}:{}", options.join(","))
    }
}
