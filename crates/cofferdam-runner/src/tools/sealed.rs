//! Starting a sealed process for each call of a tool.

use std::fs;
use std::future::pending;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_core::{Limits, Policy, SandboxId, with_causes};
use cofferdam_direct::sealed::{Answer, Fault, Input, Job, ReadJob, SealedCall, SealedTools};
use cofferdam_sandbox::{
    Backend, CreateError, Refusal, Tool, ToolAccess, ToolFolder, ToolSource, ToolSystem, Tools, Workspace,
};
use cofferdam_store::Claimed;
use tokio::sync::{Mutex, Semaphore};

use super::ToolsError;
use crate::artifacts::{make_scratch, read_answer};
use crate::node::Node;
use crate::workspace::Prepared;

/// How long a process has, with the time that its sandbox takes.
const DEADLINE: Duration = Duration::from_secs(SealedCall::SECONDS + 5);
/// The folder of what goes in and comes out, in the attempt's own.
const FOLDER: &str = "tools";

/// Starts the sealed processes of one attempt.
pub(super) struct Sealed {
    backend: Option<Arc<dyn Backend>>,
    tools: Tools,
    id: SandboxId,
    policy: Policy,
    folder: PathBuf,
    /// The project's files on this node.
    project: Option<Workspace>,
    /// One at a time: they have one name, and a model asks for as many as it likes.
    turn: Mutex<()>,
    /// How many there are on this node at the same time.
    slots: Arc<Semaphore>,
    inputs: AtomicU64,
}

/// Why a process gave no answer.
enum Failure {
    Create(CreateError),
    Ended(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Ended(format!("its files could not be kept: {error}"))
    }
}

impl Sealed {
    pub(super) fn new(node: &Node, claimed: &Claimed, project: Option<&Prepared>) -> Self {
        let (id, policy) = (SandboxId::of(&claimed.attempt), claimed.request.policy.clone());
        let limits = Limits { memory_bytes: SealedCall::MEMORY_BYTES, pids: 16, ..policy.limits.clone() };
        Self {
            backend: node.backends.get(&policy.mode).cloned(),
            tools: node.tools.clone(),
            folder: node.home.workspaces().join(id.to_string()).join(FOLDER),
            id,
            policy: Policy { limits, ..policy },
            project: project.map(|prepared| prepared.workspace.clone()),
            turn: Mutex::default(),
            slots: Arc::clone(&node.tool_slots),
            inputs: AtomicU64::new(0),
        }
    }

    /// Whether the project can be shown, by reading what is no file of it.
    pub(super) async fn try_project(&self) -> Result<(), ToolsError> {
        let nothing = Job::Read(ReadJob { path: ".".to_owned(), offset: None, limit: None });
        match self.start(nothing, None).await {
            Ok(_) => Ok(()),
            Err(Failure::Create(error)) => Err(error.into()),
            Err(Failure::Ended(message)) => Err(ToolsError::Trial(message)),
        }
    }

    /// Refuses to read where this machine has no walls.
    async fn validate(&self) -> Result<(), CreateError> {
        match &self.backend {
            Some(backend) => Ok(backend.validate(&self.policy).await?),
            None => {
                let problem = format!("this node has no mode {}, which seals the tools", self.policy.mode);
                Err(Refusal::new(problem, "cofferdam sandbox doctor").into())
            }
        }
    }

    async fn start(&self, job: Job, input: Option<&Input>) -> Result<Answer, Failure> {
        let _turn = self.turn.lock().await;
        let _slot = self.slots.acquire().await.expect("the slots are never closed");
        self.validate().await.map_err(Failure::Create)?;
        let out = make_scratch(&self.folder.join("out"))?;
        let mut folders = Vec::new();
        let mut show = |name: &str, source: ToolSource, access: ToolAccess| {
            let folder = ToolFolder { name: name.to_owned(), source, access };
            let path = self.tools.path(&folder);
            folders.push(folder);
            path
        };
        let node = |path: &Path| ToolSource::Node(path.to_owned());
        let call = SealedCall {
            job,
            input: input
                .map(|input| show("input", node(input.folder()), ToolAccess::ReadOwn).join(Input::FILE)),
            project: self.project.as_ref().map(|project| show_project(project, &mut show)).transpose()?,
            out: show("out", node(&out), ToolAccess::Write),
        };
        let tool = Tool {
            arguments: vec![SealedCall::ROLE.to_owned()],
            input: serde_json::to_vec(&call).map_err(io::Error::from)?,
            folders,
            system: ToolSystem::Nothing,
            policy: self.policy.clone(),
            deadline: DEADLINE,
        };
        let ended = self.tools.run(&self.id, &tool, pending()).await.map_err(Failure::Create)?;
        if ended.code != Some(0) {
            tracing::debug!(sandbox.id = %self.id, code = ended.code, message = %ended.message, "a sealed tool failed");
            return Err(Failure::Ended(match ended.code {
                None => format!("it was not done within {} s", DEADLINE.as_secs()),
                Some(_) => {
                    "the process that read it ended early: it needs too much memory or time".to_owned()
                }
            }));
        }
        // Whoever wrote it has read what strangers wrote.
        let answer = read_answer(&out, SealedCall::ANSWER)?;
        serde_json::from_slice(&answer).map_err(|_| Failure::Ended("its answer is none".to_owned()))
    }
}

fn show_project(
    project: &Workspace,
    show: &mut impl FnMut(&str, ToolSource, ToolAccess) -> PathBuf,
) -> Result<PathBuf, io::Error> {
    let (source, access) = match project {
        Workspace::Overlay { layers } => (ToolSource::Layers(layers.clone()), ToolAccess::ReadCaller),
        Workspace::Folder { path } => (ToolSource::Node(path.clone()), ToolAccess::ReadOwn),
        // Nothing would hide what its mask hides.
        Workspace::Direct { .. } => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(show("project", source, access))
}

#[async_trait]
impl SealedTools for Sealed {
    fn new_input(&self) -> Result<Input, Fault> {
        let number = self.inputs.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("input-{number}"));
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| Fault(format!("nothing can be fetched: {}", error.kind())))?;
        Ok(Input::new(folder))
    }

    async fn run(&self, job: Job, input: Option<Input>) -> Result<Answer, Fault> {
        self.start(job, input.as_ref()).await.map_err(|failure| match failure {
            Failure::Create(error) => {
                // Its words name folders of this machine.
                tracing::warn!(sandbox.id = %self.id, error = %with_causes(&error), "a sealed tool could not be started");
                Fault("the sealed process for it could not be started".to_owned())
            }
            Failure::Ended(message) => Fault(message),
        })
    }
}
