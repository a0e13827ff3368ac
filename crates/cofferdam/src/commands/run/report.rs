//! What a finished run looks like: a summary for people, one object for programs.

use std::time::Duration;

use cofferdam_core::{AttemptRef, NOTHING_TO_SEAL, Outcome, SandboxId};
use cofferdam_runner::RunReport;
use cofferdam_runner::artifacts::Applied;
use serde_json::{Map, Value, json};

use super::apply::AppliedDiff;
use super::progress::Watcher;
use super::tally::Tally;
use crate::failure::Failure;
use crate::units::show_duration;
use crate::{patch, sanitize, words};

/// The end of stderr.
pub(crate) fn summary(
    report: &RunReport,
    watcher: &Watcher,
    applied: Option<&Result<AppliedDiff, Failure>>,
) -> String {
    let mut lines = Vec::new();
    if matches!(report.outcome, Outcome::Failed { .. }) {
        lines.extend(watcher.tail().map(|line| format!("  | {line}")));
    }
    let took = show_duration(Duration::from_millis(report.duration_ms));
    let tries = if report.attempts > 1 { format!(", {} attempts", report.attempts) } else { String::new() };
    lines.push(format!("{} ({took}{tries}{})", words::outcome(&report.outcome), change_words(report)));
    lines.extend(watcher.tally().lines());
    lines.push(match report.is_direct {
        true => NOTHING_TO_SEAL.to_owned(),
        false => words::seal(report.mode, report.seal.as_ref(), Some(&report.outcome)),
    });
    if let Some(seal) = &report.seal {
        lines.extend(words::hidden(seal));
        lines.extend(words::stripped(seal));
    }
    lines.extend(report.warnings.iter().map(|warning| format!("warning: {}", sanitize::line(warning))));
    if let Some(class) = report.dead_letter {
        let run = &report.run;
        lines.push(format!("kept as a dead letter ({class}); again: cofferdam dead-letter replay {run}"));
    }
    lines.push(format!("more: cofferdam runs show {}", report.run));
    let mut text: String = lines.into_iter().map(|line| format!("cofferdam: {line}\n")).collect();
    if let Some(hint) = words::hint(&report.outcome) {
        text.push_str(&format!("hint: {hint}\n"));
    }
    match applied {
        Some(Ok(diff)) => text.push_str(&applied_words(diff)),
        Some(Err(failure)) => text.push_str(&failure.render()),
        None => {}
    }
    text
}

fn applied_words(diff: &AppliedDiff) -> String {
    let mut text = match diff.applied {
        Applied::Changes => "cofferdam: the diff was applied to the repository\n".to_owned(),
        Applied::Nothing => "cofferdam: there was nothing to apply\n".to_owned(),
    };
    for path in &diff.no_longer_trusted {
        let path = sanitize::line(&path.display().to_string());
        text.push_str(&format!(
            "cofferdam: WARNING: the diff changed {path}, which was trusted, and is not any more\n\
             cofferdam: WARNING: read it, then type `cofferdam trust` to let it take effect\n"
        ));
    }
    text
}

fn change_words(report: &RunReport) -> &'static str {
    let size = report.diff.as_ref().and_then(|diff| diff.metadata().ok()).map(|meta| meta.len());
    match size {
        Some(0) => ", nothing changed",
        Some(_) => "",
        None if report.reply.is_some() => "",
        None => ", no diff",
    }
}

/// The object of `--json`.
pub(crate) fn to_json(
    report: &RunReport,
    tally: &Tally,
    applied: Option<&Result<AppliedDiff, Failure>>,
) -> Result<Value, Failure> {
    let last = AttemptRef { run: report.run.clone(), number: report.attempts };
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("run", json!(report.run));
    put("state", json!(report.state));
    put("outcome", json!(report.outcome));
    put("attempts", json!(report.attempts));
    // One that was cancelled while it waited had none.
    put("sandbox", json!((report.attempts > 0).then(|| SandboxId::of(&last))));
    put("mode", if report.is_direct { json!("direct") } else { json!(report.mode) });
    put("sealed", json!(report.seal.is_some() && report.mode.is_sandboxed() && !seal_was_broken(report)));
    put("seal", json!(report.seal));
    put("usage", json!(tally.usage()));
    put("refused", json!(tally.refused()));
    put("error_class", json!(report.dead_letter));
    put("warnings", json!(report.warnings));
    put("redacted", json!(report.has_redacted));
    put("duration_ms", json!(report.duration_ms));
    if let Some(applied) = applied {
        put("applied", json!(applied.is_ok()));
    }
    if let Some(Ok(diff)) = applied {
        put("no_longer_trusted", json!(diff.no_longer_trusted));
    }
    patch::add_to_json(&mut object, report.diff.as_deref())?;
    Ok(Value::Object(object))
}

fn seal_was_broken(report: &RunReport) -> bool {
    matches!(&report.outcome, Outcome::Failed { class: cofferdam_core::FailureClass::Seal, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{FailureClass, Mode, RunId, RunState};

    fn report(outcome: Outcome, mode: Mode) -> RunReport {
        RunReport {
            run: RunId::new(0, 0),
            state: RunState::from(&outcome),
            outcome,
            attempts: 1,
            mode,
            is_direct: false,
            seal: None,
            diff: None,
            transcript: None,
            reply: None,
            warnings: vec!["the base moved: \x1b[2Ja.txt".to_owned()],
            base_moved: Vec::new(),
            has_redacted: false,
            dead_letter: None,
            duration_ms: 4_210,
        }
    }

    #[test]
    fn the_summary_says_how_it_ended_and_what_held() {
        let failed =
            Outcome::failed(FailureClass::OutOfMemory, "the agent needed more memory than its limit");
        let mut watcher = Watcher::on_stderr();
        watcher.finish();
        insta::assert_snapshot!(summary(&report(failed, Mode::Host), &watcher, None), @r"
        cofferdam: failed: the agent needed more memory than its limit (4.2 s, no diff)
        cofferdam: NOT SEALED: host mode, the agent could read and change whatever you can
        cofferdam: warning: the base moved: a.txt
        cofferdam: more: cofferdam runs show run_00000000000000000000000000
        hint: give it more with `--memory`
        ");
    }

    #[test]
    fn the_object_never_calls_host_sealed() {
        let value = to_json(&report(Outcome::Succeeded, Mode::Host), &Tally::default(), None).unwrap();
        assert_eq!(value["sealed"], false);
        assert_eq!(value["outcome"], json!({"result": "succeeded"}));
        assert_eq!(value["diff"], Value::Null);
        assert!(value.get("applied").is_none());
    }
}
