//! What was found out about a place: the fingerprint of an arm or of the host.

use std::collections::BTreeMap;

/// Facts by dotted name, for example `kernel.release` or `status.Seccomp`.
///
/// A fact that could not be read is absent; why it could not be read stands under
/// `unreadable.<name>`. Values are text exactly as found, trimmed.
pub type Facts = BTreeMap<String, String>;
