//! `--dry-run`: what would be run, and nothing started.

use std::time::Duration;

use cofferdam_api::DryRunResponse;
use cofferdam_core::{Agent, Limits, MountAccess, Network, Policy, RunRequest, Source, Work, show_bytes};
use serde_json::json;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::units::show_duration;
use crate::{sanitize, terminal};

/// Prints a request that was accepted. With `--json` it is what a service answers.
pub(super) fn print(request: RunRequest, json: bool) -> Result<ExitCode, Failure> {
    match json {
        true => terminal::write_json(&json!(DryRunResponse { dry_run: true, request }))?,
        false => {
            let lines = text_of(&request);
            let lines = lines.lines().map(|line| format!("{}\n", sanitize::line(line)));
            terminal::write_stdout(lines.collect::<String>().as_bytes())?;
        }
    }
    terminal::write_stderr("cofferdam: dry run: nothing was started\n");
    Ok(ExitCode::Succeeded)
}

fn text_of(request: &RunRequest) -> String {
    let policy = &request.policy;
    let rows = [
        ("agent", agent(request)),
        ("repository", repository(request)),
        ("mode", policy.mode.to_string()),
        ("network", policy.network.to_string()),
        ("may reach", reach(policy)),
        ("limits", limits(&policy.limits)),
        ("time", time(request)),
        ("budget", budget(policy)),
        ("mounts", mounts(policy)),
        ("variables", list(policy.env.iter().cloned())),
    ];
    rows.into_iter().map(|(name, value)| format!("{name:<11} {value}\n")).collect()
}

fn agent(request: &RunRequest) -> String {
    match &request.work {
        Work::Program { argv } => format!("none: the program {}", argv.join(" ")),
        Work::Direct(setup) => format!("none: a conversation with {}", setup.model),
        Work::Spec(setup) => {
            let phases: Vec<&str> = setup.phases.iter().map(|plan| plan.phase.as_str()).collect();
            format!(
                "{}, on phases of a spec: {}",
                with_model(setup.agent, setup.model.as_deref()),
                phases.join(", ")
            )
        }
        Work::Agent { agent, setup } => with_model(*agent, setup.model.as_deref()),
    }
}

fn with_model(agent: Agent, model: Option<&str>) -> String {
    format!("{agent}, model {}", model.unwrap_or("of its own choice"))
}

fn repository(request: &RunRequest) -> String {
    match &request.source {
        Source::Empty => "none: an empty workspace".to_owned(),
        Source::Local { path } => format!("{} as it is now", path.display()),
        Source::Git { url, reference: None } => url.to_string(),
        Source::Git { url, reference: Some(reference) } => format!("{url} at {reference}"),
    }
}

fn reach(policy: &Policy) -> String {
    let egress = &policy.egress;
    match policy.network {
        Network::None => "nothing".to_owned(),
        Network::Open => "everything that this machine reaches".to_owned(),
        Network::Sealed => {
            let model = egress.model.then(|| "its model".to_owned());
            let forwards =
                egress.forwards.iter().map(|forward| format!("{} as port {}", forward.target, forward.port));
            let push = egress.push.iter().map(|branch| format!("branch {branch} of the repository, to push"));
            list(
                model
                    .into_iter()
                    .chain(egress.allow.iter().map(ToString::to_string))
                    .chain(forwards)
                    .chain(push),
            )
        }
    }
}

fn limits(limits: &Limits) -> String {
    let cpus = match limits.cpus_milli {
        1000 => "1 processor".to_owned(),
        milli => format!("{} processors", f64::from(milli) / 1000.0),
    };
    format!(
        "{} memory, {cpus}, {} processes, {} disk",
        show_bytes(limits.memory_bytes),
        limits.pids,
        show_bytes(limits.workspace_bytes)
    )
}

fn time(request: &RunRequest) -> String {
    let one = show_duration(Duration::from_millis(request.policy.timeout_ms));
    match request.retry.max_attempts {
        1 => format!("{one}, 1 attempt"),
        attempts => format!("{one} each, up to {attempts} attempts"),
    }
}

fn budget(policy: &Policy) -> String {
    let budget = &policy.budget;
    #[expect(clippy::cast_precision_loss, reason = "amounts are below 2^53")]
    let cost = budget.max_cost_micro_usd.map(|micro| format!("{} US dollars", micro as f64 / 1e6));
    let tokens = budget.max_tokens.map(|tokens| format!("{tokens} tokens"));
    let calls = budget.max_model_calls.map(|calls| format!("{calls} calls of the model"));
    list(cost.into_iter().chain(tokens).chain(calls))
}

fn mounts(policy: &Policy) -> String {
    list(policy.mounts.iter().map(|mount| match mount.access {
        MountAccess::Ro => format!("{} (read-only)", mount.path.display()),
        MountAccess::Rw => format!("{} (writable)", mount.path.display()),
    }))
}

fn list(entries: impl Iterator<Item = String>) -> String {
    let entries: Vec<String> = entries.collect();
    match entries.is_empty() {
        true => "none".to_owned(),
        false => entries.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{Mount, PromptSetup, RunId};

    use super::*;

    #[test]
    fn a_dry_run_says_what_the_run_would_have() {
        let policy = Policy {
            network: Network::Sealed,
            mounts: vec![Mount { path: "/srv/data".into(), access: MountAccess::Rw }],
            ..Policy::default()
        };
        let mut request = RunRequest {
            id: RunId::new(1, 2),
            source: Source::Empty,
            workspace: Default::default(),
            working_dir: None,
            work: Work::Agent {
                agent: Agent::ClaudeCode,
                setup: PromptSetup { model: Some("sonnet".into()), ..Default::default() },
            },
            conversation: None,
            policy,
            publish: None,
            retry: Default::default(),
            placement: Default::default(),
            claimable_by: None,
            replay_of: None,
        };
        request.policy.egress.model = true;
        request.policy.egress.allow = vec!["npm.example:443".parse().unwrap()];
        request.policy.budget.max_tokens = Some(1000);
        insta::assert_snapshot!(text_of(&request), @r"
        agent       claude_code, model sonnet
        repository  none: an empty workspace
        mode        native
        network     sealed
        may reach   its model, npm.example:443
        limits      2 GiB memory, 1 processor, 256 processes, 10 GiB disk
        time        10m 00s, 1 attempt
        budget      1000 tokens
        mounts      /srv/data (writable)
        variables   none
        ");
    }
}
