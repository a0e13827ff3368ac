//! Roles of our binary that more than one backend has a part in.

use std::path::Path;
use std::process::ExitCode;

use crate::{apple, supervision};

/// The role: runs the sandbox whose folder is named, and records its end.
#[must_use]
pub fn shim_main(folder: &Path, ticket: &str) -> ExitCode {
    supervision::shim_main(folder, ticket, apple::supervise)
}
