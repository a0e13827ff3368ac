//! `cofferdam runs diff`.

use cofferdam_core::RunId;
use serde_json::{Map, Value, json};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::{Patch, Records};
use crate::{patch, terminal, words};

/// Prints the patch of a run.
pub(crate) async fn run(records: &Records, id: &RunId, json: bool) -> Result<ExitCode, Failure> {
    let diff = records.diff(id).await?;
    if json {
        let mut object = Map::from_iter([("run".to_owned(), json!(id))]);
        patch::add_to_json(&mut object, diff.as_ref().map(Patch::path))?;
        terminal::write_json(&Value::Object(object))?;
        return Ok(ExitCode::Succeeded);
    }
    match diff {
        Some(diff) => patch::print(diff.path()).map(|()| ExitCode::Succeeded),
        None => Err(without(records, id).await?),
    }
}

/// A run that left nothing is not the same as one whose files were removed since.
async fn without(records: &Records, id: &RunId) -> Result<Failure, Failure> {
    let run = records.run(id).await?;
    Ok(match run.files_removed_at_ms.and(words::removed(&run)) {
        Some(removed) => Failure::new(ExitCode::Failed, format!("the diff of {id} was removed: {removed}")),
        None => Failure::new(ExitCode::Failed, format!("{id} has no diff"))
            .hint(format!("type `cofferdam runs show {id}` to see how far it came")),
    })
}
