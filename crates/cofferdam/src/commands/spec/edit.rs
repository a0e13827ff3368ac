//! `cofferdam spec create` and `update`.

use std::fs::File;
use std::io::Read;

use cofferdam_api::SpecResponse;
use cofferdam_core::{MOST_PHASE_BYTES, Phase, PhaseInput, SpecInput, UpdateSpecInput, ValueError, bounds};
use serde_json::{Value, json};

use super::args::{CreateArgs, Description, UpdateArgs};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::SpecRecords;
use crate::{sanitize, terminal};

pub(super) async fn create(records: &dyn SpecRecords, args: &CreateArgs) -> Result<ExitCode, Failure> {
    let description = args.text.read()?.ok_or_else(|| {
        UsageError::new("it is not said what is wanted", "type --description \"…\", or --from FILE")
    })?;
    let input = SpecInput { title: args.title.clone(), description, project_id: args.project.clone() };
    let spec = records.create(&input).await?;
    if args.json {
        terminal::write_json(&json!(spec))?;
        return Ok(ExitCode::Succeeded);
    }
    terminal::write_stdout(format!("{}\n", spec.id).as_bytes())?;
    let next = match spec.project_id {
        Some(_) => format!("cofferdam spec execute {} --watch", spec.id),
        None => format!("cofferdam spec update {} --project NAME", spec.id),
    };
    terminal::write_stderr(&format!("cofferdam: next: {next}\n"));
    Ok(ExitCode::Succeeded)
}

pub(super) async fn update(records: &dyn SpecRecords, args: &UpdateArgs) -> Result<ExitCode, Failure> {
    let id = args.one.find(records).await?;
    let input = UpdateSpecInput {
        title: args.title.clone(),
        description: args.text.read()?,
        project_id: args.project.clone(),
        archived: (args.archive || args.restore).then_some(args.archive),
    };
    let output = args.output.as_deref().map(output_of).transpose()?;
    let changes_text = input != UpdateSpecInput::default();
    if !changes_text && output.is_none() {
        let hint =
            "type --title, --description, --from, --project, --archive, --restore or --output PHASE=FILE";
        return Err(UsageError::new("there is nothing to change", hint).into());
    }
    if changes_text {
        records.update(&id, &input).await?;
    }
    if let Some((phase, input)) = output {
        let gate = records.write(&id, phase, &input).await?;
        let word = if gate.passed { "passes" } else { "does not pass" };
        terminal::write_stderr(&format!("cofferdam: {phase} {word} its gate ({:.2})\n", gate.score));
        for reason in &gate.reasons {
            terminal::write_stderr(&format!("  {}\n", sanitize::line(reason)));
        }
    }
    told(&records.spec(&id).await?, args.one.json)
}

fn told(spec: &SpecResponse, as_json: bool) -> Result<ExitCode, Failure> {
    terminal::write_answer(as_json, || json!(spec), || format!("{} is {}\n", spec.id, spec.status))?;
    Ok(ExitCode::Succeeded)
}

impl Description {
    fn read(&self) -> Result<Option<String>, UsageError> {
        match (&self.from, self.description.as_deref()) {
            (Some(path), _) if path.as_os_str() == "-" => text_of("stdin", std::io::stdin().lock()).map(Some),
            (Some(path), _) => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| unreadable(&name, &error.to_string()))?;
                text_of(&name, file).map(Some)
            }
            (None, Some("-")) => text_of("stdin", std::io::stdin().lock()).map(Some),
            (None, text) => Ok(text.map(str::to_owned)),
        }
    }
}

/// The text of a file, as far as a description may be long: what is longer is refused by whoever checks it.
fn text_of(name: &str, file: impl Read) -> Result<String, UsageError> {
    let most = 4 * bounds::LONGEST_SPEC_DESCRIPTION_CHARS as u64;
    let mut bytes = Vec::new();
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(name, &error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| unreadable(name, "it is not valid UTF-8"))
}

/// `PHASE=FILE`.
fn output_of(pair: &str) -> Result<(Phase, PhaseInput), UsageError> {
    let hint = "type --output PHASE=FILE, such as --output requirements=requirements.json";
    let (phase, name) =
        pair.split_once('=').ok_or_else(|| UsageError::new("--output names no file", hint))?;
    let phase: Phase = phase
        .parse()
        .map_err(|error: ValueError| UsageError::new(format!("--output: {}", error.problem), error.hint))?;
    let file = File::open(name).map_err(|error| unreadable(name, &error.to_string()))?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_PHASE_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(name, &error.to_string()))?;
    let output: Value = serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(name, &format!("it is not JSON: {error}")))?;
    Ok((phase, PhaseInput { output }))
}

fn unreadable(name: &str, why: &str) -> UsageError {
    UsageError::new(
        format!("{} cannot be read: {}", sanitize::line(name), sanitize::line(why)),
        "name a file that can be read",
    )
}
