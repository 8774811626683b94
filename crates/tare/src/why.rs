//! Runs `tare why` on the machine. Questions, plans and conclusions are in [`tare_core::why`].
//!
//! The subject of a question (`question`, `in_environment`) is a command that is carried into an environment
//! ([`carry`]), the user's container (`user`), or two sides of a comparison (`two_sides`). It first runs once on both
//! sides ([`calibrate`]); then study after study is measured (`rounds`). After any other study, its suspects are
//! tested (`proving`).

pub use error::WhyError;
pub use tare_core::why::*;

pub mod calibrate;
pub mod carry;
pub mod error;
mod host_accounting;
pub(crate) mod in_environment;
mod line;
pub(crate) mod proving;
pub(crate) mod question;
pub(crate) mod rounds;
mod served;
mod two_sides;
pub(crate) mod user;
mod words;

#[cfg(test)]
mod tests {
    use tare_model::{ArmId, Facts, Params};

    /// Every step of a ladder has settings that its driver accepts.
    #[test]
    fn steps_are_settings_that_their_driver_takes() {
        let none = Params::new;
        for (driver, settings) in [
            (
                "docker",
                none()
                    .with("cpus", 0.5)
                    .with("memory", "64m")
                    .with("binds", "/w:/w"),
            ),
            (
                "docker",
                none()
                    .with("entry", "sleep infinity")
                    .with("stop_after", 1_i64),
            ),
            ("container", none().with("binds", "/w:/w")),
            (
                "container",
                none().with("seccomp", "off").with("cpus", 1i64),
            ),
            ("container", none().with("network", "host")),
            ("container", none().with("namespaces", "mount,pid")),
            (
                "container",
                none().with("rootfs", "host").with("network", "none"),
            ),
            ("oci", none()),
            ("oci", none().with("runtime", "crun").with("cpus", 0.5)),
            ("oci", none().with("spec", "docker:box")),
            ("oci", none().with("seccomp", "off").with("network", "host")),
            ("oci", none().with("namespaces", "uts")),
        ] {
            let found = crate::env::find(driver).unwrap();
            for step in super::ladder::steps(driver, &settings, &Facts::new()) {
                let taken = found.configure(ArmId::new("x").unwrap(), &step.settings);
                assert!(taken.is_ok(), "{step:?}: {}", taken.err().unwrap());
            }
        }
    }
}
