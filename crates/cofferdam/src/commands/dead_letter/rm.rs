//! `cofferdam dead-letter rm`.

use cofferdam_core::RunId;
use serde_json::json;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::Here;
use crate::terminal;

/// Removes a dead letter and its file. The run's own record stays.
pub(crate) async fn run(records: &Here, id: &RunId, json: bool) -> Result<ExitCode, Failure> {
    records.remove_letter(id).await?;
    if json {
        terminal::write_json(&json!({ "run": id, "removed": true }))?;
    } else {
        terminal::write_stderr(&format!(
            "cofferdam: removed the dead letter of {id}; `runs rm` removes the run\n"
        ));
    }
    Ok(ExitCode::Succeeded)
}
