//! Settings that container engines share under the same names.

use tare_model::launch::Bind;
use tare_model::whole_part;

use super::common::{
    CPUS, INIT, MEMORY, NO_CAPABILITIES_BESIDE, NO_NEW_PRIVILEGES, PRIVILEGED, SHM,
};
use super::grammar::Ulimit;
use super::reader::Reader;
use super::setting::Setting;

/// Checked settings; `None` and an empty list leave the choice to the engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct CommonSettings {
    /// Billionths of a CPU.
    pub(super) nano_cpus: Option<i64>,
    pub(super) cpuset: Option<String>,
    /// Bytes.
    pub(super) memory: Option<i64>,
    /// Bytes.
    pub(super) shm: Option<i64>,
    pub(super) ulimits: Vec<Ulimit>,
    pub(super) cap_add: Vec<String>,
    pub(super) cap_drop: Vec<String>,
    pub(super) privileged: bool,
    pub(super) no_new_privileges: bool,
    pub(super) init: bool,
    pub(super) binds: Vec<Bind>,
}

impl CommonSettings {
    pub(super) fn read(read: &Reader<'_>) -> Self {
        let bytes = |row| read.size(row).map(u64::cast_signed);
        let [cap_add, cap_drop] = read.capabilities();
        Self {
            nano_cpus: read
                .number(&CPUS)
                .map(|cpus| whole_part((cpus * 1e9).round()).cast_signed()),
            cpuset: read.cpuset(),
            memory: bytes(&MEMORY),
            shm: bytes(&SHM),
            ulimits: read.ulimits(),
            cap_add,
            cap_drop,
            privileged: read.is_on(&PRIVILEGED),
            no_new_privileges: read.is_on(&NO_NEW_PRIVILEGES),
            init: read.is_on(&INIT),
            binds: read.binds(),
        }
    }

    /// Whether one setting would silently undo another; with that setting, and the message and hint for this case.
    pub(super) fn contradiction(&self) -> (bool, Setting, (&'static str, &'static str)) {
        let has_capabilities = !self.cap_add.is_empty() || !self.cap_drop.is_empty();
        let is_wrong = self.privileged && has_capabilities;
        (is_wrong, PRIVILEGED, NO_CAPABILITIES_BESIDE)
    }
}
