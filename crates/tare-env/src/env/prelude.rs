//! Common imports of the drivers.

pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::net::{IpAddr, Ipv4Addr};
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::time::Duration;

pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use serde_json::{Map, Value, json};
pub(crate) use tare_model::launch::Bind;
pub(crate) use tare_model::wire::{Reply, Request};
pub(crate) use tare_model::{ArmId, Facts, Params, Reason, RunId, fact};

pub(crate) use super::text::{and_cleanup, entries_of, escaped, members_of, printable, texts_of};
pub(crate) use super::{
    Availability, Channel, ChannelError, Charged, Configured, Declared, Driver, EnvError,
    Environment, FileRequest, Instance, Result, Setting, SettingsError, StartMode, no_path,
    not_shared,
};
pub(crate) use crate::cx::{
    AgentBinary, CONTROL_LIMIT, CommandError, CommandLine, Context, Running, files, locked, vars,
};
