//! `cofferdam runs cancel`.

use cofferdam_core::RunId;
use serde_json::json;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::Records;
use crate::terminal;

/// Asks for a run to end.
pub(crate) async fn run(records: &Records, id: &RunId, json: bool) -> Result<ExitCode, Failure> {
    let before = records.run(id).await?.state;
    if before.is_final() {
        return Err(Failure::new(ExitCode::Refused, format!("{id} has ended already: {before}"))
            .hint(format!("type `cofferdam runs show {id}` to see how")));
    }
    let state = records.request_cancel(id).await?;
    if json {
        terminal::write_json(&json!({ "run": id, "state": state }))?;
    } else if state.is_final() {
        terminal::write_stderr(&format!("cofferdam: {id} is {state}\n"));
    } else {
        terminal::write_stderr(&format!("cofferdam: {id} was asked to end\n"));
    }
    Ok(ExitCode::Succeeded)
}
