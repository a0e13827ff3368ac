//! `cofferdam spec approve` and `reject`.

use cofferdam_core::DecideSpecInput;
use cofferdam_operations::Decision;
use serde_json::json;

use super::args::{ApproveArgs, OneSpec, RejectArgs};
use super::show;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::SpecRecords;
use crate::terminal;

pub(super) async fn approve(records: &dyn SpecRecords, args: &ApproveArgs) -> Result<ExitCode, Failure> {
    let input = DecideSpecInput { phase: args.phase.clone(), reason: args.reason.clone() };
    decide(records, &args.one, Decision::Approve, &input).await
}

pub(super) async fn reject(records: &dyn SpecRecords, args: &RejectArgs) -> Result<ExitCode, Failure> {
    let input = DecideSpecInput { phase: args.phase.clone(), reason: Some(args.reason.clone()) };
    decide(records, &args.one, Decision::Reject, &input).await
}

async fn decide(
    records: &dyn SpecRecords,
    one: &OneSpec,
    decision: Decision,
    input: &DecideSpecInput,
) -> Result<ExitCode, Failure> {
    let id = one.find(records).await?;
    let word = match decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected: it is tried again",
    };
    let (phase, run) = records.decide(&id, decision, input).await?;
    let answer = || json!({ "spec_id": id, "phase": phase, "run_id": run });
    terminal::write_answer(one.json, answer, || format!("{phase} is {word}\n"))?;
    if !one.json {
        terminal::write_stderr(&show::next(&records.spec(&id).await?));
    }
    Ok(ExitCode::Succeeded)
}
