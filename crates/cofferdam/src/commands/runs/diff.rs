//! `cofferdam runs diff`.

use cofferdam_core::RunId;
use serde_json::{Map, Value, json};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::{Patch, Records};
use crate::{patch, terminal};

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
        None => Err(Failure::new(ExitCode::Failed, format!("{id} has no diff"))
            .hint(format!("type `cofferdam runs show {id}` to see how far it came"))),
    }
}
