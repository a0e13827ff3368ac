//! One file for each thing that is fuzzed, with the promises that it keeps.

pub(crate) mod adapter;
pub(crate) mod broker_head;
pub(crate) mod container_values;
pub(crate) mod git_push;
pub(crate) mod host_parser;
pub(crate) mod meter;
pub(crate) mod model_request;
pub(crate) mod redactor;
pub(crate) mod worker_protocol;
