//! `cofferdam spec execute` and `cancel`.

use cofferdam_core::ExecuteSpecInput;
use serde_json::json;

use super::args::{ExecuteArgs, OneSpec};
use super::watch;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::SpecRecords;
use crate::{sanitize, terminal};

pub(super) async fn run(records: &dyn SpecRecords, args: &ExecuteArgs) -> Result<ExitCode, Failure> {
    let id = args.one.find(records).await?;
    let list = |names: &[String]| (!names.is_empty()).then(|| names.to_vec());
    let input = ExecuteSpecInput {
        resume_from_phase: args.from_phase.clone(),
        agent: args.agent.clone(),
        model: args.model.clone(),
        mode: args.mode.clone(),
        phases: list(&args.phases),
        approvals: list(&args.approve_after),
        max_cost_usd: args.max_cost_usd,
        ..ExecuteSpecInput::default()
    };
    let after = records.end_of_events(&id).await?;
    let started = records.execute(&id, &input).await?;
    for warning in &started.warnings {
        terminal::write_stderr(&format!("cofferdam: WARNING: {}\n", sanitize::line(warning)));
    }
    let word = if started.is_new { "started" } else { "already running" };
    if args.watch {
        terminal::write_stderr(&format!("cofferdam: {word}: {}\n", started.run));
        return watch::from(records, &id, after, args.one.json).await;
    }
    let answer = || json!({ "spec_id": id, "run_id": started.run, "is_new": started.is_new });
    terminal::write_answer(args.one.json, answer, || format!("{}\n", started.run))?;
    if !args.one.json {
        terminal::write_stderr(&format!("cofferdam: {word}; follow it: cofferdam spec watch {id}\n"));
    }
    Ok(ExitCode::Succeeded)
}

pub(super) async fn cancel(records: &dyn SpecRecords, one: &OneSpec) -> Result<ExitCode, Failure> {
    let id = one.find(records).await?;
    let run = records.cancel(&id).await?;
    let answer = || json!({ "spec_id": id, "run_id": run });
    terminal::write_answer(one.json, answer, || match &run {
        Some(run) => format!("{run} ends\n"),
        None => "no run was under way\n".to_owned(),
    })?;
    Ok(ExitCode::Succeeded)
}
