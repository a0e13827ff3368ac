//! `cofferdam runs rm`.

use cofferdam_core::RunId;
use serde_json::json;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::Records;
use crate::terminal;

/// Removes a run that has ended.
pub(crate) async fn run(records: &Records, id: &RunId, json: bool) -> Result<ExitCode, Failure> {
    records.remove_run(id).await?;
    if json {
        terminal::write_json(&json!({ "run": id, "removed": true }))?;
    } else {
        terminal::write_stderr(&format!("cofferdam: removed {id}\n"));
    }
    Ok(ExitCode::Succeeded)
}
