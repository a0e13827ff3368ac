//! `cofferdam spec list`.

use std::time::Duration;

use cofferdam_api::SpecResponse;
use cofferdam_core::SpecListInput;
use serde_json::json;

use super::args::ListArgs;
use crate::caller::now_ms;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::SpecRecords;
use crate::units::show_duration;
use crate::{sanitize, terminal};

/// How much of a title is shown.
const TITLE_WIDTH: usize = 60;

pub(super) async fn run(records: &dyn SpecRecords, args: &ListArgs) -> Result<ExitCode, Failure> {
    let input = SpecListInput {
        project_id: args.project.clone(),
        archived: args.archived.then_some(true),
        ..SpecListInput::default()
    };
    let specs = records.list(&input).await?;
    if args.json {
        terminal::write_json(&json!(specs))?;
    } else if specs.is_empty() {
        terminal::write_stderr(
            "cofferdam: no specs; type `cofferdam spec create TITLE --project NAME --description \"…\"`\n",
        );
    } else {
        terminal::write_stdout(table(&specs, now_ms()).as_bytes())?;
    }
    Ok(ExitCode::Succeeded)
}

fn table(specs: &[SpecResponse], now_ms: u64) -> String {
    let mut text = format!("{:<31}  {:<17}  {:<12}  {:>8}  TITLE\n", "SPEC", "STATUS", "PHASE", "AGE");
    for spec in specs {
        let age = show_duration(Duration::from_millis(now_ms.saturating_sub(spec.created_at_ms)));
        let phase = spec.current_phase.map_or("-", |phase| phase.as_str());
        let title = sanitize::short_line(&spec.title, TITLE_WIDTH);
        let (id, status) = (spec.id.as_str(), spec.status.as_str());
        text.push_str(&format!("{id:<31}  {status:<17}  {phase:<12}  {age:>8}  {title}\n"));
    }
    text
}
