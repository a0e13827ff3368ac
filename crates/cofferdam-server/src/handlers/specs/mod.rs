//! Specs, one file per operation.

pub(crate) mod approve_spec;
pub(crate) mod archive_spec;
pub(crate) mod cancel_spec;
pub(crate) mod create_spec;
pub(crate) mod execute_spec;
pub(crate) mod export_spec;
pub(crate) mod get_execution_status;
pub(crate) mod get_phase_data;
pub(crate) mod get_rows;
pub(crate) mod get_spec;
pub(crate) mod launch_spec;
pub(crate) mod list_spec_events;
pub(crate) mod list_spec_runs;
pub(crate) mod list_specs;
pub(crate) mod list_versions;
pub(crate) mod reject_spec;
pub(crate) mod update_spec;
pub(crate) mod write_phase;

mod sandbox;
mod stream;
