//! Imports for most tests here.

pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::fs;
pub(crate) use std::io::{BufRead, BufReader, Read, Write};
pub(crate) use std::net::{TcpListener, TcpStream};
#[cfg(unix)]
pub(crate) use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
pub(crate) use std::os::unix::net::{UnixListener, UnixStream};
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Child, Command, Output, Stdio};
pub(crate) use std::sync::{Arc, Mutex, OnceLock, PoisonError};
pub(crate) use std::time::{Duration, Instant};

pub(crate) use serde_json::{Value, json};
pub(crate) use tare::cx::{Agents, CommandLine, Context};
pub(crate) use tare::env::docker::DOCKER;
pub(crate) use tare::env::user_container::{ContainerRequest, Shares, Source, UserContainer};
pub(crate) use tare::env::{
    Availability, ChannelError, Charged, Driver, EnvError, Environment, Instance, StartMode,
};
pub(crate) use tare::plan::Plan;
pub(crate) use tare::run::{AllBlocks, Registry, execute};
pub(crate) use tare::store::Store;
pub(crate) use tare::workload::{Declared, DecodeError, ParamError, Workload};
pub(crate) use tare_model::wire::{PROTOCOL, Reply, Request};
pub(crate) use tare_model::{
    ArmId, ArmSpec, CommandCall, Facts, Failure, Outcome, Params, ProbeCall, ProbeReport,
    RawOutput, Reason, Recipe, RunId, Sample, StoppedBy, Study, WorkloadId, WorkloadSpec,
};

pub(crate) use crate::ended::{assert_lacks, assert_says};
#[cfg(target_os = "linux")]
pub(crate) use crate::product::{
    Ended, Product, assert_valid_dossier, cell, has_container, has_docker, is_root, line,
    needs_container, needs_docker, needs_root, words,
};
pub(crate) use crate::talk::{Tried, ask, hello, inner_facts};
#[cfg(unix)]
pub(crate) use crate::world::executable;
pub(crate) use crate::world::{
    Snapshot, World, arm_id, as_nobody, carry_out, child, contents, is_ready, labelled, lossy,
    note_skipped_contract, params, signal, skip, turn, turn_where, wait_until,
};
