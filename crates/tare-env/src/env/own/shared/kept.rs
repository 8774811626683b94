//! What is shown of the user's, in the words of the engine: as it was asked for, or closed, covered or left out.
//!
//! Pure: how a share is to be shown is decided by whoever asks.
//! What it cannot see: options of mounts that engines will have one day; those of today stay as they are.

use serde_json::{Value, json};

use super::super::share::Share;

/// What is shown of the user's, as it was asked for or in its place.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) binds: Vec<Value>,
    pub(super) mounts: Vec<Value>,
}

impl Kept {
    pub(super) fn bind(&mut self, text: &str, share: &Share, shown: Shown) {
        let bind = match shown.fate {
            Fate::AsItIs => without_changes(text),
            // With a layer of the arm's own, and none that the user has named for it.
            Fate::ReadOnly(_) if is_overlaid(text) => overlaid(share),
            Fate::ReadOnly(Below::Nothing) => read_only(text, share),
            Fate::ReadOnly(below) => {
                let mount = json!({"Type": "bind", "Source": share.source, "Target": share.target});
                self.mounts.push(closed(mount, below));
                return self.cover(share, shown.sockets);
            }
            Fate::Over => overlaid(share),
            Fate::New => return self.mounts.push(new_volume(share)),
            Fate::Gone => return,
        };
        self.binds.push(Value::String(bind));
        self.cover(share, shown.sockets);
    }

    pub(super) fn mount(&mut self, mount: Value, share: &Share, shown: Shown) {
        match shown.fate {
            Fate::AsItIs => self.mounts.push(mount),
            Fate::ReadOnly(below) => self.mounts.push(closed(mount, below)),
            Fate::Over => self.binds.push(Value::String(overlaid(share))),
            Fate::New => return self.mounts.push(new_volume(share)),
            Fate::Gone => return,
        }
        self.cover(share, shown.sockets);
    }

    /// Has something that nobody hears at stand over sockets in a folder.
    fn cover(&mut self, share: &Share, sockets: Vec<String>) {
        let target = share.target.trim_end_matches('/');
        self.mounts.extend(sockets.into_iter().map(|socket| {
            json!({"Type": "bind", "Source": "/dev/null", "Target": format!("{target}/{socket}"), "ReadOnly": true})
        }));
    }
}

/// A mount that is only read, with what is mounted below it.
fn closed(mut mount: Value, below: Below) -> Value {
    mount["ReadOnly"] = Value::Bool(true);
    if mount["Type"] == "volume" {
        // An empty one would be filled with what the image has there.
        mount["VolumeOptions"]["NoCopy"] = Value::Bool(true);
    }
    let how = match below {
        Below::Nothing => {
            // What comes later stays outside.
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

/// What is shown of a share.
pub(super) struct Shown {
    pub(super) fate: Fate,
    /// The sockets in it that are covered, by their paths from there.
    pub(super) sockets: Vec<String>,
}

impl From<Fate> for Shown {
    fn from(fate: Fate) -> Self {
        Self {
            fate,
            sockets: Vec::new(),
        }
    }
}

pub(super) enum Fate {
    AsItIs,
    ReadOnly(Below),
    /// An empty volume of the arm's own.
    New,
    /// As it is, below a layer of the arm's own.
    Over,
    Gone,
}

/// What becomes of what is mounted below a folder that is shown read-only, of which an engine makes the uppermost
/// mount read-only by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Below {
    /// There is nothing.
    Nothing,
    /// It is read-only too.
    ReadOnly,
    /// It is not shown.
    Hidden,
}

fn overlaid(share: &Share) -> String {
    format!("{}:{}:O", share.source, share.target)
}

/// A bind without the wishes that change the files themselves, which are the user's: labels and owners.
fn without_changes(text: &str) -> String {
    with_options(text, |option| !matches!(option, "" | "z" | "Z" | "U"), None)
}

/// The same, only to be read: nothing of the image is copied into it, and what is mounted in it later stays outside.
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

/// Whether the engine lays a layer over what is bound.
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
