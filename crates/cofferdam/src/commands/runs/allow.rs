//! `cofferdam runs allow`: lets a live run reach one more place.

use cofferdam_core::RunId;
use serde_json::json;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::Records;
use crate::terminal;

/// Adds to what the broker lets through.
pub(crate) async fn run(
    records: &Records,
    id: &RunId,
    names: &[String],
    json: bool,
) -> Result<ExitCode, Failure> {
    let added = records.allow(id, names).await?;
    if json {
        terminal::write_json(&json!({ "run": id, "added": added }))?;
    } else {
        let names: Vec<String> = added.iter().map(ToString::to_string).collect();
        let what = if names.is_empty() { "nothing new".to_owned() } else { names.join(", ") };
        terminal::write_stderr(&format!("cofferdam: {id} may now reach {what}\n"));
    }
    Ok(ExitCode::Succeeded)
}
