//! The agent's cgroup, left and cleaned up when the agent ends; does nothing on systems without cgroups.

use super::ServeOptions;

/// Ends the processes in the cgroup when it is dropped.
pub(super) struct Group {
    #[cfg(target_os = "linux")]
    own: Option<crate::launch::own_group::OwnGroup>,
}

impl Group {
    /// Joins the requested cgroup, if possible and if this process belongs to a run.
    pub(super) fn join(options: &ServeOptions) -> Self {
        #[cfg(target_os = "linux")]
        return Self {
            own: std::env::var(tare_model::launch::RUN_VARIABLE)
                .ok()
                .filter(|run| options.has_group && !run.is_empty())
                .and_then(|run| crate::launch::own_group::OwnGroup::join(&run)),
        };
        #[cfg(not(target_os = "linux"))]
        {
            let _ = options.has_group;
            Self {}
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            own.close();
        }
    }
}
