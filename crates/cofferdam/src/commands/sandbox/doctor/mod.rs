//! `cofferdam sandbox doctor`: what this machine can and cannot enforce, which agents it has, and what to
//! type. Its exit code says whether a run would start, which it finds out by trying.

mod agents;
mod machine;
mod models;
mod report;

use clap::Args;
use cofferdam_core::Mode;
use cofferdam_runner::Home;
use cofferdam_sandbox::{Finding, Status};

use self::report::Report;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{node, terminal};

/// Find out what this machine can enforce, whether a run would start, and what to type if not
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n   0  a run would start\n   3  no run would start")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Looks at everything and tells.
pub(crate) async fn run(args: &DoctorArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let mut findings = vec![machine::kernel()];
    findings.extend(sandbox(caller).await);
    findings.push(machine::git(caller).await);
    let agents = agents::agents(caller).await?;
    let models = models::models(caller);
    let usable = agents.iter().filter(|agent| agent.is_usable && models.has_key_for(agent.cli));
    let prompt = usable.map(|agent| agent.cli).collect();
    findings.extend(agents.iter().map(|agent| agent.finding.clone()));
    findings.extend(models.findings);
    let report = Report::new(findings, prompt);
    if args.json {
        terminal::write_json(&report.to_json())?;
    } else {
        terminal::write_stdout(report.to_text().as_bytes())?;
    }
    Ok(if report.would_start() { ExitCode::Succeeded } else { ExitCode::Refused })
}

/// The state folder, and a trial in it. This process is a node for as long as that takes, as it would be
/// for a run: what it makes is its own, and what dead processes have left is removed.
async fn sandbox(caller: &Caller) -> Vec<Finding> {
    let home = match caller.open_state() {
        Ok(home) => home,
        Err(failure) => return without("state_folder", &failure),
    };
    let mut findings = vec![machine::state_folder(home.root())];
    match trial(&home, caller).await {
        Ok(found) => findings.extend(found),
        Err(failure) => findings.extend(without("record", &failure)),
    }
    findings
}

async fn trial(home: &Home, caller: &Caller) -> Result<Vec<Finding>, Failure> {
    let node = node::register(home, caller, node::BrokerSetup::default()).await?;
    let native = node
        .backend(Mode::Native)
        .ok_or_else(|| Failure::new(ExitCode::Internal, "this node has no backend for `native`"))?;
    Ok(native.check(node.id()).await)
}

/// Without the state folder or the record in it no run would start, and nothing can be tried.
fn without(name: &'static str, failure: &Failure) -> Vec<Finding> {
    let state = Finding {
        name,
        status: Status::Missing,
        detail: failure.message().to_owned(),
        remedy: failure.remedy().map(str::to_owned),
    };
    vec![state, Finding::unknown("sandbox", "none could be tried")]
}
