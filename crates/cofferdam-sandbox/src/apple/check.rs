//! What `sandbox doctor` tells of a runtime's command and of its image, one finding for each thing that a run needs.

use std::time::Duration;

use cofferdam_core::{LimitsRule, Mode, Network, NodeId, Policy, inside};

use super::abilities::Abilities;
use super::arguments::{Parts, arguments};
use super::image::Image;
use super::runtime::Answer;
use super::{AppleBackend, socket_trial, validate};
use crate::backend::{Finding, Refusal};
use crate::container::{
    AGENTS_DEADLINE, Bound, MOUNT_DEADLINE, Memory, MountTrial, SocketTrial, agents_in, find_agents, mounts,
    scratch, socket, unknown_agents,
};
use crate::random::random;
use crate::supervision::Runtime;
use crate::trial::trial;

/// A command has no volumes of ours.
const OVERLAY_REMEDY: &str = "use --mode native or --mode docker, where a workspace can be layered";

/// Asks the runtime, looks at the image, and tries a sandbox.
pub(super) async fn check(backend: &AppleBackend, node: &NodeId) -> Vec<Finding> {
    let policy = Policy {
        mode: Mode::Apple,
        container: backend.container.clone(),
        limits_rule: LimitsRule::BestEffort,
        ..Policy::default()
    };
    let mut findings = Vec::new();
    match look(backend, &policy, &mut findings).await {
        Ok(agents) => {
            let trial = trial(backend, &backend.options.state, node, policy.container).await;
            findings.extend([trial.sandbox(), trial.overlay(OVERLAY_REMEDY)]);
            findings.extend(agents);
        }
        Err(finding) => findings.extend([finding, Finding::unknown("sandbox", "none could be tried")]),
    }
    findings
}

/// Everything up to the trial, and the agents in the image. An error is the finding after which there is nothing more
/// to ask.
async fn look(
    backend: &AppleBackend,
    policy: &Policy,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Finding>, Finding> {
    let missing = |name: &'static str| move |refusal: Refusal| Finding::missing(name, &refusal);
    let runtime = backend.runtime(policy).map_err(missing("runtime_command"))?;
    let abilities = backend.abilities(&runtime).await.map_err(missing("runtime_command"))?;
    let said = format!("{} ({})", abilities.version, runtime.program.display());
    findings.push(Finding::ok("runtime_command", said));
    validate::check_service(&runtime, abilities.kind).await.map_err(missing("service"))?;
    findings.push(Finding::ok("service", format!("`{}` answers", runtime.name())));
    abilities.check(policy).map_err(missing("runtime_options"))?;
    findings.push(Finding::ok("runtime_options", "it has an option for every wall"));
    let image = backend.image(&runtime, policy).await.map_err(missing("image"))?;
    findings.push(Finding::ok("image", policy.container.image.to_string()));
    let asked = Asked { backend, runtime: &runtime, abilities: &abilities, policy, image: &image };
    findings.push(asked.mount().await);
    findings.push(socket(socket_trial::try_socket(backend, &runtime, &abilities, policy, &image).await));
    Ok(asked.agents().await)
}

/// A runtime that is asked things in throw-away containers.
struct Asked<'a> {
    backend: &'a AppleBackend,
    runtime: &'a Runtime,
    abilities: &'a Abilities,
    policy: &'a Policy,
    image: &'a Image,
}

impl Asked<'_> {
    /// Whether a container sees what is mounted into it.
    async fn mount(&self) -> Finding {
        let trial = match MountTrial::new(&self.backend.options.state) {
            Ok(trial) => trial,
            Err(error) => {
                return Finding::unknown("mounts", format!("nothing could be put there to mount: {error}"));
            }
        };
        let bounds = vec![trial.bound(), Bound::read_only(&self.backend.options.binary, inside::BINARY)];
        let mut command = vec![inside::BINARY.to_owned()];
        command.extend(MountTrial::arguments());
        match self.ask("mount", command, bounds, Vec::new(), MOUNT_DEADLINE).await {
            // 1 is the role's own; what a runtime could not start has another status.
            Ok(answer) if matches!(answer.code, Some(0 | 1)) => {
                mounts(Ok((answer.code.unwrap_or(1).into(), &answer.output)))
            }
            Ok(answer) => mounts(Err(&answer.message())),
            Err(why) => mounts(Err(&why)),
        }
    }

    /// Which agents the image has.
    async fn agents(&self) -> Vec<Finding> {
        let (known, memories) = (&self.backend.options.agents, vec![scratch(self.policy)]);
        let answer =
            self.ask("agents", find_agents(known).into(), Vec::new(), memories, AGENTS_DEADLINE).await;
        match answer {
            Ok(answer) if answer.code == Some(0) => agents_in(&answer.output, known, self.policy),
            Ok(answer) => unknown_agents(known, &answer.message()),
            Err(why) => unknown_agents(known, &why),
        }
    }

    async fn ask(
        &self,
        purpose: &str,
        command: Vec<String>,
        bounds: Vec<Bound>,
        memories: Vec<Memory>,
        deadline: Duration,
    ) -> Result<Answer, String> {
        let random = u64::from_ne_bytes(random().map_err(|error| error.to_string())?);
        let name = format!("cofferdam-{purpose}-{random:016x}");
        let policy = Policy { network: Network::None, ..self.policy.clone() };
        let parts = Parts {
            policy: &policy,
            abilities: self.abilities,
            name: &name,
            who: SocketTrial::who(),
            root: rustix::process::geteuid().is_root(),
            labels: Vec::new(),
            bounds,
            memories,
            volumes: &self.image.volumes,
            command,
        };
        let mut line = arguments(&parts).map_err(|refusal| refusal.problem)?;
        // Whoever asked may go away before we remove it.
        line.insert(1, "--rm".to_owned());
        let answer = self.runtime.answer_within(line, deadline).await.map_err(|error| error.to_string());
        let runtime = self.runtime.clone();
        let removed = tokio::task::spawn_blocking(move || runtime.remove(&name)).await;
        let answer = answer?;
        removed.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string())?;
        Ok(answer)
    }
}
