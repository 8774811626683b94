//! What a driver declares of itself, so that the parts that differ between drivers are read and not asked for by name.

use super::mechanism::{self, Mechanisms};

/// Whose files are found inside an environment, where no setting says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// The host's own.
    Hosts,
    /// Those of an image or a root of its own.
    Image,
    /// None but those that were asked for.
    Packed,
    /// Those of another machine.
    Elsewhere,
}

/// What a driver declares of itself.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Its name: that of its file.
    pub id: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Those of its settings by which causes are switched on and off, besides those of its mechanisms.
    pub switches: &'static [&'static str],
    /// What its environments are made of, and how each part is switched off.
    pub mechanisms: &'static Mechanisms,
    /// Whose files are inside.
    pub files: Files,
    /// What the devices begin with that it puts between its environments and the network of the host.
    pub links: &'static [&'static str],
    /// How early it is asked about where no environment is named, 1 first; `None` if it never is.
    pub choice: Option<u8>,
}

impl Declared {
    /// A driver of environments with files of an image, of which nothing else is known.
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
