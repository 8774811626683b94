//! Requests to servers, as data: [`http`] writes requests and parses responses, [`mix`] chooses the requests,
//! [`request_plan`] reads both from a workload's parameters.

pub mod http;
pub mod mix;
pub mod request_plan;
