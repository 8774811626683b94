//! `why`: the half that touches the machine. What is asked, planned and concluded is in [`tare_core::why`].
//!
//! What is asked (`question`, `asked`) is a command, which is carried into an environment ([`carry`]), a container of
//! the user's (`user`) or two sides of a comparison (`two_sides`). It is looked at on both sides ([`calibrate`]), and
//! then study after study is carried out (`rounds`). After any other study its suspects are tried (`proving`).

pub use tare_core::why::*;
pub use trouble::Trouble;

pub(crate) mod asked;
pub mod calibrate;
pub mod carry;
mod from_outside;
mod line;
pub(crate) mod proving;
pub(crate) mod question;
pub(crate) mod rounds;
mod served;
pub mod trouble;
mod two_sides;
pub(crate) mod user;
mod words;

#[cfg(test)]
mod tests {
    use tare_model::{ArmId, Facts, Params};

    /// Every step of a ladder is an environment that its driver takes.
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
