//! What servers are asked, as data: [`http`] writes requests and reads answers from bytes, [`mix`] says which requests are
//! sent, [`asked`] takes both from a workload's parameters.

pub mod asked;
pub mod http;
pub mod mix;
