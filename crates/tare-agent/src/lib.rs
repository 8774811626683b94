//! The agent: a small static executable that runs inside every arm.
//!
//! It makes no decisions. It follows the frames on its stdin, starts a fresh worker process for every trial and
//! returns the worker's result. Its parts: [`entry`] (the subcommands), [`serve`] (the resident side), [`worker`]
//! (one trial), [`meter`] (timing), [`probe`] (the frozen kernels), [`facts`] (the environment's fingerprint) and, on
//! Linux, `launch` (the built-in container).

#[cfg(target_os = "linux")]
pub mod allocate;
pub mod args;
pub mod binding;
pub mod build;
mod by_name;
#[cfg(target_os = "linux")]
pub mod cgroup;
pub mod counters;
#[cfg(target_os = "linux")]
pub mod direct_file;
#[cfg(target_os = "linux")]
pub mod end_runs;
pub mod entry;
pub mod facts;
pub mod folder;
#[cfg(target_os = "linux")]
pub mod guest;
#[cfg(target_os = "linux")]
pub mod hold;
#[cfg(target_os = "linux")]
pub mod hub;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(target_os = "linux")]
pub mod listing;
pub mod meter;
mod moment;
#[cfg(not(target_os = "linux"))]
pub mod other_systems;
pub mod probe;
#[cfg(unix)]
mod proc;
pub mod program;
#[cfg(target_os = "linux")]
mod quiet;
pub mod region;
#[cfg(target_os = "linux")]
pub mod ring;
#[cfg(target_os = "linux")]
pub mod sandbox;
pub mod serve;
pub mod slices;
#[cfg(target_os = "linux")]
pub mod tap;
pub mod tcp;
pub mod tcp_flow;
pub mod team;
pub mod turns;
pub mod udp;
#[cfg(windows)]
mod windows;
pub mod worker;

#[cfg(test)]
use tare_testkit::registered;
#[cfg(all(test, target_os = "linux"))]
use tare_testkit::skip;
