//! A driver's declaration, so that other code reads what differs between drivers instead of checking their names.

use super::mechanism::{self, Mechanisms};

/// Source of the files in an environment, unless a setting changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// The host's files.
    Hosts,
    /// The files of an image or a separate rootfs.
    Image,
    /// Only requested files.
    Packed,
    /// The files of another machine.
    Elsewhere,
}

/// A driver's declaration.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its name, which is that of its file.
    pub id: &'static str,
    /// Description, one sentence.
    pub about: &'static str,
    /// Settings that switch causes on and off, in addition to those of its mechanisms.
    pub switches: &'static [&'static str],
    /// The mechanisms of its environments, and how each is switched off.
    pub mechanisms: &'static Mechanisms,
    /// Source of the files inside.
    pub files: Files,
    /// Name prefixes of the devices between its environments and the host's network.
    pub links: &'static [&'static str],
    /// Priority if no environment is named, 1 first; `None` if it is never chosen.
    pub choice: Option<u8>,
}

impl Declared {
    /// Declares a driver with an image's files and no other properties.
    pub const fn new(id: &'static str, about: &'static str) -> Self {
        Self {
            id,
            about,
            switches: &[],
            mechanisms: &mechanism::UNKNOWN,
            files: Files::Image,
            links: &[],
            choice: None,
        }
    }
}
