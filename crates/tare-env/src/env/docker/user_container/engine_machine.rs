//! The machine of a Docker engine: which of the user's folders and volumes it has, and what it can do with them.
//!
//! Limits: the mounts of an engine in another mount namespace of this machine are not seen.

use crate::env::prelude::*;

use super::super::Engine;
use super::super::api::Api;
use super::super::errors::is_missing;
use crate::env::user_container::machine::{Machine, mounts_of};
use crate::env::user_container::share::Share;

/// The machine of an engine, as far as it is known.
#[derive(Clone, Copy)]
pub(crate) struct EngineMachine<'a> {
    api: &'a Api,
    is_here: bool,
    is_recursive: bool,
    /// Whether the volumes that can be written to count as missing.
    is_emptied: bool,
}

impl<'a> EngineMachine<'a> {
    pub(crate) fn new(api: &'a Api, engine: &Engine) -> Self {
        let text = |name: &str| engine.facts.get(name).map_or("", String::as_str);
        Self {
            api,
            is_here: engine.elsewhere.is_none(),
            is_recursive: is_recursive(text(fact::ENGINE_API), text(fact::ENGINE_KERNEL)),
            is_emptied: false,
        }
    }

    /// The same machine without writable volumes: each is replaced by an empty one.
    pub(super) fn emptied(self) -> Self {
        Self {
            is_emptied: true,
            ..self
        }
    }
}

impl Machine for EngineMachine<'_> {
    fn has(&self, share: &Share) -> bool {
        if share.is_folder() {
            return !self.is_here || files::kind(Path::new(&share.source)).is_ok();
        }
        if self.is_emptied && share.may_write {
            return false;
        }
        let asked = self.api.client.inspect_volume(&share.source);
        let found = self.api.attempt(CONTROL_LIMIT, asked);
        !matches!(found, Err(error) if is_missing(&error))
    }

    fn place(&self, share: &Share) -> Option<String> {
        if share.is_folder() {
            return Some(share.source.clone());
        }
        let asked = self.api.client.inspect_volume(&share.source);
        let found = self.api.attempt(CONTROL_LIMIT, asked).ok()?;
        (found.driver == "local" && !found.mountpoint.is_empty()).then_some(found.mountpoint)
    }

    fn mounts_of(&self, container: &str) -> Option<Vec<Value>> {
        let asked = self.api.client.inspect_container(container, None);
        let found = self.api.attempt(CONTROL_LIMIT, asked).ok()?;
        mounts_of(&serde_json::to_value(found.mounts).ok()?)
    }

    fn is_here(&self) -> bool {
        self.is_here
    }

    fn is_recursive(&self) -> bool {
        self.is_recursive
    }
}

/// Whether an engine with this API version can make mounts recursively read-only on request, and the kernel supports
/// it.
fn is_recursive(api: &str, kernel: &str) -> bool {
    numbers(api) >= Some((1, 44)) && numbers(kernel) >= Some((5, 12))
}

/// Major and minor number of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '-', '+']).map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursive_read_only_needs_api_and_kernel_support() {
        for (api, kernel, can) in [
            ("1.44", "5.12.0-rc1", true),
            ("1.51", "6.18.44-fc-v657", true),
            ("1.43", "6.1.0", false),
            ("1.44", "5.10.0-30-amd64", false),
            ("2.0", "10.1", true),
            ("", "6.1", false),
            ("1.44", "", false),
        ] {
            assert_eq!(is_recursive(api, kernel), can, "{api} {kernel}");
        }
    }
}
