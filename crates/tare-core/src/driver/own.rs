//! Arms that are like something of the user's: the settings that say so.

use tare_model::Params;

/// The setting of arms that are like something of the user's: the file in which it is kept, or its name.
pub const LIKE: &str = "like";
/// The setting that is a line for an engine's client.
pub const RUN: &str = "run";
/// The setting that is a compose file and one of its services.
pub const COMPOSE: &str = "compose";
/// The setting of an arm that is a running container of the user's itself: its name.
pub const INSIDE: &str = "inside";
/// The arm with the files of an image alone, as a bare process.
pub const IMAGE: &str = "image";

/// Whether an arm with these settings is like something of the user's, or that itself.
pub fn is_own(settings: &Params) -> bool {
    let says = |name: &str| settings.value(name).is_some();
    [LIKE, RUN, COMPOSE].into_iter().any(says) || is_inside(settings)
}

/// Whether an arm with these settings is a running container of the user's itself.
pub fn is_inside(settings: &Params) -> bool {
    settings.value(INSIDE).is_some()
}
