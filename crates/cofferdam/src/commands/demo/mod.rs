//! `cofferdam demo`: a scripted agent mends a sample repository in the real sandbox, through the real line,
//! and tries to get out. It needs no key and no agent.

pub(crate) mod agent;
mod attempts;
mod findings;
mod outside;
mod sample;

use std::time::Duration;

use clap::Args;
use cofferdam_core::{EventType, LimitsRule, Outcome, Policy, RunRequest, Source, Work, inside};
use cofferdam_runner::{Progress, RunReport};
use serde_json::{Value, json};

use self::attempts::Tried;
use self::findings::Findings;
use self::outside::Outside;
use super::run;
use crate::caller::{Caller, new_run_id};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::node::BrokerSetup;
use crate::terminal::{self, Notices};
use crate::units::show_duration;
use crate::{patch, sanitize, signals, words};

/// Show on a sample repository what a sealed run holds
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Plays the demo. It succeeds only if everything held.
pub(crate) async fn run(args: &DemoArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let mut outside = Outside::set_up(caller)?;
    let notices = Notices::plain();
    notices.say("demo: a scripted agent (no model) works on a sample repository, in a real sandbox");
    let cancel = signals::cancel_on_signals(notices, &signals::OF_THIS_MACHINE)
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    let mut tried = Vec::new();
    let request = request(&outside)?;
    let report = run::execute(
        &home,
        caller,
        BrokerSetup::default(),
        run::Asked::New(request),
        &mut |progress| see(&progress, &mut tried),
        cancel,
    )
    .await?;

    let findings = check(&report, &tried, &mut outside)?;
    if args.json {
        let mut object = findings.to_json();
        object["run"] = json!(report.run);
        object["outcome"] = json!(report.outcome);
        object["seal"] = json!(report.seal);
        terminal::write_json(&object)?;
    } else {
        show(&report)?;
        // An agent that was never started proves nothing, so there is nothing to show.
        if !tried.is_empty() {
            terminal::write_stdout(format!("\n{}", findings.table()).as_bytes())?;
        }
    }
    let (code, last_words) = match ExitCode::from(&report.outcome) {
        ExitCode::Succeeded if findings.all_held() => (ExitCode::Succeeded, NEXT),
        ExitCode::Succeeded => (ExitCode::Failed, "cofferdam: NOT everything held; please report this\n"),
        code => (code, "cofferdam: the demo did not come to its end\n"),
    };
    terminal::write_stderr(last_words);
    Ok(code)
}

const NEXT: &str = "\
cofferdam: everything held. In a repository of yours, type:
  cofferdam run -- CMD            run a program sealed, and see its changes as a diff
  cofferdam run --apply -- CMD    and apply them if it succeeds
  cofferdam runs list             what was run so far
";

fn request(outside: &Outside) -> Result<RunRequest, Failure> {
    let path = outside
        .repository()
        .canonicalize()
        .map_err(|error| Failure::internal("the sample repository cannot be opened", &error))?;
    let targets = json!(outside.targets()).to_string();
    Ok(RunRequest::new(
        new_run_id(),
        Source::Local { path },
        Work::Program { argv: vec![inside::BINARY.to_owned(), "demo-agent".to_owned(), targets] },
        Policy { limits_rule: LimitsRule::BestEffort, timeout_ms: 60_000, ..Policy::default() },
    ))
}

/// Shows an event, and keeps it if it reports an attempt.
fn see(progress: &Progress, tried: &mut Vec<Tried>) {
    let Progress::Event(event) = progress else { return };
    let text = event.data.get("text").and_then(Value::as_str).unwrap_or_default();
    let shown = match Tried::parse(text) {
        Some(attempt) => {
            let result = if attempt.worked { "it worked" } else { "refused" };
            let line = format!("tries to {}: {result} ({})", attempt.attempt.words(), attempt.answer);
            tried.push(attempt);
            line
        }
        None if event.event_type == EventType::SandboxSealed => {
            "the seal was measured and accepted".to_owned()
        }
        None => text.to_owned(),
    };
    let line = sanitize::short_line(&shown, 160);
    terminal::write_stderr(&format!("{:>4}  {:<18}  {line}\n", event.seq, event.event_type.as_str()));
}

fn check(report: &RunReport, tried: &[Tried], outside: &mut Outside) -> Result<Findings, Failure> {
    let mended = match &report.diff {
        Some(diff) => sample::patch_mends(diff, &outside.copy())?,
        None => false,
    };
    let policy = Policy { limits_rule: LimitsRule::BestEffort, ..Policy::default() };
    let sealed = report.seal.as_ref().is_some_and(|seal| seal.breaches(&policy, &[]).is_empty());
    let checks = vec![
        ("the run succeeded", report.outcome == Outcome::Succeeded),
        ("the seal was measured before the agent started, and is what the policy asks for", sealed),
        ("with the diff, the sample's test passes in a copy", mended),
        ("the sample repository itself is byte for byte what it was", outside.repository_is_untouched()),
    ];
    Ok(Findings::new(tried, outside, checks))
}

fn show(report: &RunReport) -> Result<(), Failure> {
    let took = show_duration(Duration::from_millis(report.duration_ms));
    let mut text = format!("{} ({took})\n", words::outcome(&report.outcome));
    text.push_str(&format!("{}\n\n", words::seal(report.mode, report.seal.as_ref(), Some(&report.outcome))));
    if let Some(hint) = words::hint(&report.outcome) {
        text.push_str(&format!("hint: {hint}\n\n"));
    }
    terminal::write_stdout(text.as_bytes())?;
    report.diff.as_deref().map_or(Ok(()), patch::print)
}
