//! `cofferdam spec show`, and what every command says of how a spec stands.

use cofferdam_api::{PhaseResponse, SpecResponse};
use cofferdam_core::{Phase, SpecStatus, ValueError};
use serde_json::json;

use super::args::ShowArgs;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::SpecRecords;
use crate::{sanitize, terminal};

pub(super) async fn run(records: &dyn SpecRecords, args: &ShowArgs) -> Result<ExitCode, Failure> {
    let id = args.one.find(records).await?;
    if let Some(phase) = &args.phase {
        let phase: Phase = phase.parse().map_err(|error: ValueError| {
            UsageError::new(format!("--phase: {}", error.problem), error.hint)
        })?;
        let data = records.outputs(&id).await?;
        let output = data.phase_data.get(&phase).ok_or_else(|| {
            Failure::new(ExitCode::Failed, format!("{phase} has brought nothing yet"))
                .hint(format!("type `cofferdam spec show {id}` to see how far it is"))
        })?;
        terminal::write_json(output)?;
        return Ok(ExitCode::Succeeded);
    }
    let spec = records.spec(&id).await?;
    terminal::write_answer(args.one.json, || json!(spec), || text(&spec))?;
    if !args.one.json {
        terminal::write_stderr(&next(&spec));
    }
    Ok(ExitCode::Succeeded)
}

fn text(spec: &SpecResponse) -> String {
    let mut text = format!("{}\n{} · {}", sanitize::line(&spec.title), spec.id, spec.status);
    if let Some(project) = &spec.project_id {
        text.push_str(&format!(" · {project}"));
    }
    text.push_str(&format!(" · version {}\n\n", spec.version));
    for line in spec.description.lines() {
        text.push_str(&format!("  {}\n", sanitize::line(line)));
    }
    text.push('\n');
    for phase in &spec.phases {
        text.push_str(&phase_lines(spec, phase));
    }
    if let Some(run) = &spec.run_id {
        text.push_str(&format!("\nlast run: {run}\n"));
    }
    text
}

fn phase_lines(spec: &SpecResponse, phase: &PhaseResponse) -> String {
    let score = phase.score.map_or("-".to_owned(), |score| format!("{score:.2}"));
    let decided = match &phase.decision {
        Some(said) if said.approved => ", approved",
        Some(_) => ", rejected",
        None if spec.awaits_approval == Some(phase.phase) => ", waits for approval",
        None => "",
    };
    let tries = match phase.tries {
        0 => String::new(),
        1 => ", 1 try".to_owned(),
        tries => format!(", {tries} tries"),
    };
    let mut text = format!("{:<13} {:<7} {score:>5}{tries}{decided}\n", phase.phase.as_str(), phase.state);
    for reason in &phase.reasons {
        text.push_str(&format!("    {}\n", sanitize::line(reason)));
    }
    text
}

/// What to type next.
pub(super) fn next(spec: &SpecResponse) -> String {
    let id = &spec.id;
    let text = match spec.status {
        SpecStatus::Draft if spec.project_id.is_none() => {
            format!("give it a project: cofferdam spec update {id} --project NAME")
        }
        SpecStatus::Draft => format!("have it done: cofferdam spec execute {id} --watch"),
        SpecStatus::Queued | SpecStatus::Executing => format!("follow it: cofferdam spec watch {id}"),
        SpecStatus::AwaitingApproval => {
            let phase = spec.awaits_approval.map_or("…", |phase| phase.as_str());
            format!(
                "read it: cofferdam spec show {id} --phase {phase}\n\
                 cofferdam: then: cofferdam spec approve {id}, or cofferdam spec reject {id} --reason \"…\""
            )
        }
        SpecStatus::Completed => format!("read it: cofferdam spec export {id}"),
        SpecStatus::Failed | SpecStatus::Cancelled => {
            format!("go on where it stopped: cofferdam spec execute {id} --watch")
        }
    };
    format!("cofferdam: {text}\n")
}
