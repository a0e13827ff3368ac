//! A sandbox that is made, measured and removed as a run's is, with no agent in it: the only way to know
//! whether a run would start. Settings of the kernel, profiles and filters of containers all have a say, and
//! none of them can be asked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::{
    AttemptRef, ContainerPolicy, FromWorker, InsideSeal, Job, LimitsRule, NodeId, Policy, RunId, SandboxId,
    Seal, ToWorker, Work, WorkerExited, WorkspaceSeal, inside, with_causes, worker_line,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::backend::{
    Attachment, Backend, CreateError, Finding, OpenError, Process, Refusal, Sandbox, SandboxSpec, Status,
    Workspace,
};
use crate::clock::now_ms;
use crate::random::random;
use crate::remove::remove_tree;
use crate::trials;

/// A measurement takes milliseconds. One that takes this long is stuck.
const DEADLINE: Duration = Duration::from_secs(30);
/// No seal is longer.
const LONGEST_OUTPUT: u64 = 4 << 20;

/// What came of a trial.
pub(crate) struct Trial {
    /// Whether the workspace can be layered; why not. `None` if it did not come to that.
    pub(crate) overlay: Option<Result<(), String>>,
    /// The seal of the sandbox that came up.
    pub(crate) seal: Result<Seal, Refusal>,
}

impl Trial {
    /// The finding `sandbox`.
    pub(crate) fn sandbox(&self) -> Finding {
        match &self.seal {
            Ok(seal) => {
                let read_only = seal.inside.mounts.iter().filter(|mount| mount.read_only).count();
                Finding::ok(
                    "sandbox",
                    format!("a trial came up and was measured: sealed, {read_only} mounts read-only"),
                )
            }
            Err(refusal) => Finding::missing("sandbox", refusal),
        }
    }

    /// The finding `overlay`, with what to type if there is none.
    pub(crate) fn overlay(&self, remedy: &str) -> Finding {
        match &self.overlay {
            Some(Ok(())) => Finding::ok("overlay", "a workspace can be a layer above the repository"),
            Some(Err(why)) => {
                let detail = format!("workspaces are copied, which takes time and space: {why}");
                Finding::new("overlay", Status::Weak, &detail, remedy)
            }
            None => Finding::unknown("overlay", "no sandbox came up to try it in"),
        }
    }
}

/// Makes, measures and removes a sandbox of this backend, below its state folder.
pub(crate) async fn trial(
    backend: &dyn Backend,
    state: &Path,
    node: &NodeId,
    container: ContainerPolicy,
) -> Trial {
    let policy = Policy {
        mode: backend.mode(),
        container,
        limits_rule: LimitsRule::BestEffort,
        timeout_ms: 60_000,
        ..Policy::default()
    };
    if let Err(refusal) = backend.validate(&policy).await {
        return Trial { overlay: None, seal: Err(refusal) };
    }
    let run = new_run();
    let folder = match trials::new_folder(state, "sandbox") {
        Ok(folder) => folder,
        Err(error) => {
            let text = format!("the state folder cannot be written: {error}");
            return Trial { overlay: None, seal: Err(failed(text)) };
        }
    };
    let spec = |number, workspace| SandboxSpec {
        id: SandboxId::of(&AttemptRef { run: run.clone(), number }),
        node: node.clone(),
        policy: policy.clone(),
        workspace,
        target: inside::WORKSPACE.into(),
        kept: Vec::new(),
        companions: Vec::new(),
        read_only: Vec::new(),
        shown: Vec::new(),
        egress: None,
        alias: None,
        attachment: Attachment::Attached,
    };
    let layered = try_one(backend, &spec(1, Workspace::Overlay { layers: vec![folder.clone()] })).await;
    let tried = match layered {
        Err(Stop::NoOverlay(why)) => {
            let copied = try_one(backend, &spec(2, Workspace::Folder { path: folder.clone() })).await;
            Trial { overlay: Some(Err(why)), seal: copied.map_err(Stop::refusal) }
        }
        Ok(seal) => Trial { overlay: Some(Ok(())), seal: Ok(seal) },
        Err(stop) => Trial { overlay: None, seal: Err(stop.refusal()) },
    };
    let _ = remove_tree(&folder);
    tried
}

enum Stop {
    NoOverlay(String),
    Other(Refusal),
}

impl Stop {
    fn refusal(self) -> Refusal {
        match self {
            Self::NoOverlay(why) => failed(why),
            Self::Other(refusal) => refusal,
        }
    }
}

impl From<CreateError> for Stop {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::NoOverlay { message, .. } => Self::NoOverlay(message),
            CreateError::Refused(refusal) => Self::Other(refusal),
            CreateError::DiskFull { .. } => Self::Other(Refusal::new(
                "there is no space left in the state folder",
                "make space, or export COFFERDAM_HOME=/a/folder/on/another/disk",
            )),
            CreateError::Failed { message, .. } => Self::Other(failed(message)),
            CreateError::Deadline { within, .. } => {
                Self::Other(failed(format!("it did not start within {} s", within.as_secs())))
            }
        }
    }
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        Self::Other(failed(with_causes(&error)))
    }
}

/// A failure that nobody foresaw: the log is where there is more to see.
fn failed(problem: String) -> Refusal {
    Refusal::new(problem, "COFFERDAM_LOG=debug cofferdam sandbox doctor")
}

async fn try_one(backend: &dyn Backend, spec: &SandboxSpec) -> Result<Seal, Stop> {
    let sandbox = backend.create(spec).await?;
    let measured = tokio::time::timeout(DEADLINE, measure(backend, &*sandbox, spec)).await;
    let destroyed = sandbox.destroy().await;
    let seal = measured
        .unwrap_or_else(|_| Err(Stop::Other(failed("the seal was not measured in time".to_owned()))))?;
    destroyed?;
    let breaches: Vec<String> = seal.breaches(&spec.policy, &[]).iter().map(ToString::to_string).collect();
    if breaches.is_empty() {
        return Ok(seal);
    }
    Err(Stop::Other(failed(format!("the sandbox is weaker than it must be: {}", breaches.join("; ")))))
}

/// Has the worker measure the seal as it would for an agent, which is never let in.
async fn measure(backend: &dyn Backend, sandbox: &dyn Sandbox, spec: &SandboxSpec) -> Result<Seal, Stop> {
    let Process { mut stdin, stdout } = sandbox.attach().await?;
    let line = serde_json::to_string(&ToWorker::Job(Box::new(job(backend, sandbox, spec))));
    let line = line.expect("a line is plain data");
    let sent = stdin.write_all(format!("{line}\n").as_bytes()).await;
    sent.map_err(|error| Stop::Other(failed(format!("the worker cannot be reached: {error}"))))?;
    let mut lines = BufReader::new(stdout.take(LONGEST_OUTPUT)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(line) = FromWorker::parse(&line) else { continue };
        if line.line_type == worker_line::SEAL
            && let Ok(inside) = serde_json::from_value::<InsideSeal>(line.data.clone())
        {
            let outside = sandbox.measure(&inside).await?;
            let workspace = WorkspaceSeal::measured(inside::WORKSPACE, &inside);
            let (hidden, stripped) = (Vec::new(), Vec::new());
            return Ok(Seal { mode: spec.policy.mode, inside, outside, workspace, hidden, stripped });
        }
        if line.line_type == worker_line::EXITED {
            let said = serde_json::from_value::<WorkerExited>(line.data).map(|exited| exited.end);
            return Err(Stop::Other(failed(format!("the seal could not be measured: {said:?}"))));
        }
    }
    Err(Stop::Other(failed("the worker ended without a word".to_owned())))
}

fn job(backend: &dyn Backend, sandbox: &dyn Sandbox, spec: &SandboxSpec) -> Job {
    Job {
        attempt: spec.id.attempt().clone(),
        work: Work::Program { argv: vec!["true".to_owned()] },
        working_directory: working_directory(sandbox),
        folder: None,
        env: backend.base_env(&spec.policy),
        program: Vec::new(),
        gateway: None,
        session: None,
        spec: None,
        walls: backend.wall_plan(&spec.id, &spec.policy, &[] as &[PathBuf]),
        probe_paths: inside::CLOSED.map(String::from).into(),
        output_bytes: spec.policy.limits.output_bytes,
        grace_ms: spec.policy.grace_ms,
    }
}

fn working_directory(sandbox: &dyn Sandbox) -> String {
    sandbox.exchange().working_directory(Path::new(inside::WORKSPACE)).display().to_string()
}

fn new_run() -> RunId {
    // Two trials of one process and millisecond would meet in a folder that exists, and say so.
    let random = u128::from_ne_bytes(random().unwrap_or_default());
    RunId::new(now_ms(), random)
}
