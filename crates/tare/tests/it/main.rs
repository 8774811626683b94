//! Tare's integration tests: one program, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says why it is skipped"
)]

/// Unwraps what a test needs, or ends the test; the helper has already reported the skip.
macro_rules! needed {
    ($what:expr) => {{
        let Some(given) = $what else {
            return;
        };
        given
    }};
}

#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod bad_input;
#[cfg(target_os = "linux")]
mod broken_disk;
#[cfg(target_os = "linux")]
mod bundles;
#[cfg(target_os = "linux")]
mod carried;
#[cfg(target_os = "linux")]
mod cli;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod compare;
mod container;
mod contract;
mod docker;
#[cfg(target_os = "linux")]
mod docker_contexts;
#[cfg(target_os = "linux")]
mod docker_variants;
#[cfg(target_os = "linux")]
mod docker_windows;
mod documentation;
mod ended;
mod engine;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod gate;
mod host;
#[cfg(target_os = "linux")]
mod in_slices;
#[cfg(target_os = "linux")]
mod in_turn;
#[cfg(target_os = "linux")]
mod inner_root;
#[cfg(target_os = "linux")]
mod instances;
#[cfg(target_os = "linux")]
mod keeping;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod misbehaviour;
#[cfg(target_os = "linux")]
mod oci;
#[cfg(target_os = "linux")]
mod os_micro;
#[cfg(target_os = "linux")]
mod people;
#[cfg(target_os = "linux")]
mod podman;
mod prelude;
#[cfg(target_os = "linux")]
mod product;
#[cfg(target_os = "linux")]
mod proof;
#[cfg(target_os = "linux")]
mod reports;
#[cfg(target_os = "linux")]
mod service;
mod shapes;
#[cfg(target_os = "linux")]
mod sides;
#[cfg(target_os = "linux")]
mod sources;
#[cfg(unix)]
mod ssh;
#[cfg(target_os = "linux")]
mod stopping;
mod talk;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod tools_cpu;
#[cfg(target_os = "linux")]
mod tools_io;
#[cfg(target_os = "linux")]
mod trace_controls;
mod unread;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(target_os = "linux")]
mod user_container;
#[cfg(target_os = "linux")]
mod user_container_baseline;
#[cfg(target_os = "linux")]
mod user_container_compose;
#[cfg(target_os = "linux")]
mod user_container_engines;
#[cfg(target_os = "linux")]
mod user_container_mounts;
#[cfg(target_os = "linux")]
mod user_container_reach;
#[cfg(target_os = "linux")]
mod user_container_records;
#[cfg(target_os = "linux")]
mod user_container_server;
#[cfg(target_os = "linux")]
mod user_container_ways;
#[cfg(target_os = "linux")]
mod vm;
#[cfg(target_os = "linux")]
mod why;
#[cfg(target_os = "linux")]
mod wine;
mod world;

#[cfg(target_os = "linux")]
use tare_testkit::{browser, schema};
use tare_testkit::{skip, traces};
