//! `cofferdam sandbox doctor`: what this machine can and cannot enforce, which agents it has, and what to
//! type. Its exit code says whether a run would start, which it finds out by trying.

mod agents;
mod configured;
mod machine;
mod models;
mod report;
mod there;

use clap::Args;
use cofferdam_core::{Agent, Mode, Settings};
use cofferdam_runner::Home;
use cofferdam_sandbox::{Finding, Status, docker};

pub(crate) use self::report::Report;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::server::ServerFlag;
use crate::{node, settings, terminal};

/// Find out what this machine can enforce, whether a run would start, and what to type if not
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n   0  a run would start\n   3  no run would start")]
pub(crate) struct DoctorArgs {
    /// Which sandbox to try [default: what the settings say, or native]
    #[arg(long, value_name = "native|docker|apple")]
    mode: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Whose nodes look
    #[command(flatten)]
    server: ServerFlag,
}

/// Looks at everything and tells.
pub(crate) async fn run(args: &DoctorArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    if let Some(called) = args.server.called(caller)? {
        return there::run(&called.client, args.mode.as_deref(), args.json).await;
    }
    let mode = mode_from(args.mode.as_deref(), caller)?;
    let report = look(mode, caller).await?;
    terminal::write_answer(args.json, || report.to_json(), || report.to_text())?;
    Ok(if report.would_start() { ExitCode::Succeeded } else { ExitCode::Refused })
}

/// Looks at everything.
pub(crate) async fn look(mode: Mode, caller: &Caller) -> Result<Report, Failure> {
    let mut findings = vec![machine::kernel()];
    findings.extend(sandbox(mode, caller).await);
    findings.push(machine::git(caller).await);
    // A container's agents are in its image, and were asked there.
    if !mode.is_container() {
        findings.extend(agents::agents(caller).await?);
    }
    let models = models::models(caller);
    let is_usable = |agent: &Agent| {
        let there = |one: &Finding| one.name == agent.as_str() && one.status == Status::Ok;
        findings.iter().any(there) && models.has_key_for(*agent)
    };
    let prompt = Agent::ALL.into_iter().filter(is_usable).collect();
    findings.extend(models.findings);
    findings.extend(configured::configured(caller));
    if mode == Mode::Native {
        findings.push(containers(caller).await);
    }
    Ok(Report::new(mode, findings, prompt))
}

fn mode_from(asked: Option<&str>, caller: &Caller) -> Result<Mode, UsageError> {
    let hint = "type `--mode native`, `--mode docker` or `--mode apple`";
    match asked.map(str::parse::<Mode>) {
        // Settings that cannot be read are a finding of their own.
        None => match settings::read(caller).map(|settings| settings.sandbox.mode) {
            Ok(Mode::Host) | Err(_) => Ok(Mode::Native),
            Ok(mode) => Ok(mode),
        },
        Some(Ok(Mode::Host)) => Err(UsageError::new("`host` has no walls to look at", hint)),
        Some(Ok(mode)) => Ok(mode),
        Some(Err(error)) => Err(UsageError::new(error.to_string(), hint)),
    }
}

/// Whether containers are worth asking about. A machine without an engine has its `native` runs.
async fn containers(caller: &Caller) -> Finding {
    let settings = settings::read(caller).unwrap_or_default();
    let engine = docker::engine_finding(&node::engine_address(caller, &settings)).await;
    let more = "`cofferdam sandbox doctor --mode docker` says more";
    match engine.status {
        Status::Ok | Status::Weak | Status::Unknown => {
            Finding { name: "docker", detail: format!("an engine: {}; {more}", engine.detail), ..engine }
        }
        Status::Missing => Finding { name: "docker", status: Status::Weak, ..engine },
    }
}

/// The state folder, and a trial in it. This process is a node for as long as that takes, as it would be
/// for a run: what it makes is its own, and what dead processes have left is removed.
async fn sandbox(mode: Mode, caller: &Caller) -> Vec<Finding> {
    let home = match caller.open_state() {
        Ok(home) => home,
        Err(failure) => return without("state_folder", &failure),
    };
    let mut findings = vec![machine::state_folder(home.root())];
    let settings = match settings::read(caller) {
        Ok(settings) => settings,
        Err(failure) => {
            findings.extend(without("settings", &failure));
            return findings;
        }
    };
    match trial(mode, &home, caller, settings).await {
        Ok(found) => findings.extend(found),
        Err(failure) => findings.extend(without("record", &failure)),
    }
    findings
}

async fn trial(
    mode: Mode,
    home: &Home,
    caller: &Caller,
    settings: Settings,
) -> Result<Vec<Finding>, Failure> {
    let broker = node::BrokerSetup { settings, ..node::BrokerSetup::default() };
    let node = node::register(home, caller, broker).await?;
    let backend = node
        .backend(mode)
        .ok_or_else(|| Failure::new(ExitCode::Internal, format!("this node has no backend for `{mode}`")))?;
    Ok(backend.check(node.id()).await)
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
