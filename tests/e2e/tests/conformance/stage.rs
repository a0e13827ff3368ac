//! A backend, and a worker to talk to.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cofferdam_core::{
    AgentEnd, AttemptRef, FromWorker, InsideSeal, Job, LimitsRule, Mode, Network, Policy, RunId, SandboxId,
    ToWorker, Work, WorkerExited, inside, worker_line,
};
use cofferdam_e2e::processes::{descendants_of, with_role};
use cofferdam_e2e::{Engine, Fixture, binary, node_id};
use cofferdam_runner::Home;
use cofferdam_sandbox::{
    Attachment, Backend, Caller, Options, Process, Sandbox, SandboxSpec, Workspace, apple, docker, host,
    native,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};

/// Longer than anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What is different about a backend.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) mode: Mode,
    /// A network that it can enforce.
    pub(crate) network: Network,
    make: Make,
}

/// How a backend is made from a state folder.
#[derive(Clone, Copy)]
enum Make {
    OnThisMachine(fn(PathBuf) -> Arc<dyn Backend>),
    /// Containers, and the command by which a stranger would lay hands on them; `None` where there is none.
    InContainers {
        command: fn(&Engine) -> Option<PathBuf>,
        backend: fn(PathBuf, &Engine) -> Arc<dyn Backend>,
    },
}

pub(crate) const HOST: Kind = Kind {
    mode: Mode::Host,
    network: Network::Open,
    make: Make::OnThisMachine(|state| Arc::new(host::HostBackend::new(options(state)))),
};

pub(crate) const NATIVE: Kind = Kind {
    mode: Mode::Native,
    network: Network::None,
    make: Make::OnThisMachine(|state| Arc::new(native::NativeBackend::new(options(state)))),
};

pub(crate) const DOCKER: Kind = Kind {
    mode: Mode::Docker,
    network: Network::None,
    make: Make::InContainers {
        command: |engine| Some(engine.docker_command().to_owned()),
        backend: |state, engine| {
            let address = engine.address().parse().expect("the engine's address");
            Arc::new(docker::DockerBackend::new(options(state), Ok(address)))
        },
    },
};

/// Through a runtime's command: the only difference between two of them is which.
pub(crate) const APPLE_PODMAN: Kind = apple(|engine| engine.podman_command());
pub(crate) const APPLE_DOCKER: Kind = apple(|engine| Some(engine.docker_command().to_owned()));

const fn apple(command: fn(&Engine) -> Option<PathBuf>) -> Kind {
    Kind {
        mode: Mode::Apple,
        network: Network::None,
        make: Make::InContainers {
            command,
            backend: |state, _| Arc::new(apple::AppleBackend::new(options(state))),
        },
    }
}

fn options(state: PathBuf) -> Options {
    let path = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).into();
    Options::new(state, binary(), Caller { home: None, path, locale: Default::default() })
}

/// A backend with a state folder of its own.
pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) kind: Kind,
    pub(crate) backend: Arc<dyn Backend>,
    engine: Option<(Engine, PathBuf)>,
    home: Home,
    attempt: AttemptRef,
}

impl Stage {
    /// `None`, said on stderr, where there is no engine for a backend that needs one.
    pub(crate) fn new(kind: Kind) -> Option<Self> {
        let engine = match kind.make {
            Make::OnThisMachine(_) => None,
            Make::InContainers { command, .. } => {
                let engine = Engine::find()?;
                let command = command(&engine)?;
                Some((engine, command))
            }
        };
        let fixture = Fixture::without_repository();
        let home = Home::open(&fixture.state()).expect("a state folder");
        let backend = make(kind, &home, engine.as_ref());
        // Control groups are named after sandboxes, and tests run side by side.
        static STAGES: AtomicU64 = AtomicU64::new(1);
        let number =
            u128::from(std::process::id()) << 32 | u128::from(STAGES.fetch_add(1, Ordering::Relaxed));
        let attempt = AttemptRef { run: RunId::new(cofferdam_runner::now_ms(), number), number: 1 };
        Some(Self { fixture, kind, backend, engine, home, attempt })
    }

    /// What a process has that was started after the one that made the sandboxes had died.
    pub(crate) fn backend_after_a_restart(&self) -> Arc<dyn Backend> {
        make(self.kind, &self.home, self.engine.as_ref())
    }

    pub(crate) fn policy(&self) -> Policy {
        let mut policy = Policy {
            mode: self.kind.mode,
            network: self.kind.network,
            limits_rule: LimitsRule::BestEffort,
            grace_ms: 200,
            ..Policy::default()
        };
        if let Some((engine, command)) = &self.engine {
            policy.container.image = engine.small_image().parse().expect("an image's name");
            let command = command.to_str().expect("a plain path");
            policy.container.runtime_command = command.parse().expect("one program");
        }
        policy
    }

    /// The processes of the sandbox, by their numbers on this machine.
    pub(crate) fn processes(&self) -> Vec<u32> {
        if self.engine.is_none() {
            return descendants_of(with_role(&self.fixture.state(), "shim")[0]);
        }
        let first = self.by_hand(&["inspect", "--format", "{{.State.Pid}}", &self.container()]);
        let first = first.trim().parse().expect("a process id");
        std::iter::once(first).chain(descendants_of(first)).collect()
    }

    /// What the sandbox's container is called: as it was planned, and before that as the engine's will be.
    pub(crate) fn container(&self) -> String {
        let planned = ["docker", "apple"].iter().find_map(|mode| {
            let folder = self.fixture.state().join("sandboxes").join(mode).join(self.id().to_string());
            let plan = std::fs::read(folder.join("container.json")).ok()?;
            let plan: serde_json::Value = serde_json::from_slice(&plan).ok()?;
            plan["container"].as_str().map(str::to_owned)
        });
        planned.unwrap_or_else(|| format!("cofferdam-{}", self.id()))
    }

    /// What somebody does with the engine's own command. Its output.
    pub(crate) fn by_hand(&self, arguments: &[&str]) -> String {
        let (_, command) = self.engine.as_ref().expect("a backend that runs containers");
        let output = Command::new(command).args(arguments).output().expect("the engine's command");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Paths that lead to the engine's own socket.
    pub(crate) fn engine_sockets(&self) -> Vec<PathBuf> {
        let (engine, _) = self.engine.as_ref().expect("a backend that runs containers");
        let socket = PathBuf::from(engine.address().trim_start_matches("unix://"));
        let folder = socket.parent().expect("a socket is in a folder").to_owned();
        let link = self.fixture.path("innocent");
        std::os::unix::fs::symlink(&socket, &link).expect("a new link");
        vec![socket, folder, link, "/".into()]
    }

    /// A small image that the engine has.
    pub(crate) fn image(&self) -> String {
        let (engine, _) = self.engine.as_ref().expect("a backend that runs containers");
        engine.small_image().to_owned()
    }

    pub(crate) fn id(&self) -> SandboxId {
        SandboxId::of(&self.attempt)
    }

    pub(crate) fn spec(&self, policy: &Policy, attachment: Attachment) -> SandboxSpec {
        let path = self.fixture.path("tree");
        std::fs::create_dir_all(&path).expect("a workspace");
        SandboxSpec {
            id: self.id(),
            policy: policy.clone(),
            workspace: Workspace::Folder { path: path.canonicalize().expect("the workspace is there") },
            target: inside::WORKSPACE.into(),
            kept: Vec::new(),
            companions: Vec::new(),
            read_only: Vec::new(),
            shown: Vec::new(),
            egress: None,
            alias: None,
            attachment,
            node: node_id(1),
        }
    }

    /// A sandbox whose worker waits for a job.
    pub(crate) async fn create(&self, policy: &Policy, attachment: Attachment) -> Box<dyn Sandbox> {
        let spec = self.spec(policy, attachment);
        self.backend.validate(policy).await.expect("the policy can be enforced");
        self.backend.create(&spec).await.expect("the sandbox is made")
    }

    /// A detached sandbox in which a script runs.
    pub(crate) async fn running(&self, policy: &Policy, script: &str) -> (Box<dyn Sandbox>, Talk) {
        let sandbox = self.create(policy, Attachment::Detached).await;
        let mut talk = Talk::to(&*sandbox).await;
        self.give_job(&mut talk, &*sandbox, policy, script).await;
        talk.until("agent.started").await;
        (sandbox, talk)
    }

    pub(crate) async fn give_job(
        &self,
        talk: &mut Talk,
        sandbox: &dyn Sandbox,
        policy: &Policy,
        script: &str,
    ) {
        let working_directory = sandbox.exchange().working_directory(Path::new(inside::WORKSPACE));
        let job = Job {
            attempt: self.attempt.clone(),
            work: Work::Program { argv: vec!["/bin/sh".into(), "-c".into(), script.into()] },
            working_directory: working_directory.display().to_string(),
            folder: None,
            env: self.backend.base_env(policy),
            program: Vec::new(),
            gateway: None,
            session: None,
            spec: None,
            walls: self.backend.wall_plan(sandbox.id(), policy, &[]),
            probe_paths: Vec::new(),
            output_bytes: policy.limits.output_bytes,
            grace_ms: policy.grace_ms,
        };
        talk.send(&ToWorker::Job(Box::new(job))).await;
        talk.send(&ToWorker::Start { number: 1 }).await;
    }
}

fn make(kind: Kind, home: &Home, engine: Option<&(Engine, PathBuf)>) -> Arc<dyn Backend> {
    let state = home.root().to_owned();
    match (kind.make, engine) {
        (Make::OnThisMachine(backend), _) => backend(state),
        (Make::InContainers { backend, .. }, Some((engine, _))) => backend(state, engine),
        (Make::InContainers { .. }, None) => unreachable!("a stage with containers has an engine"),
    }
}

/// A worker's stdio.
pub(crate) struct Talk {
    stdin: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
    lines: Lines<BufReader<std::pin::Pin<Box<dyn tokio::io::AsyncRead + Send>>>>,
}

impl Talk {
    pub(crate) async fn to(sandbox: &dyn Sandbox) -> Self {
        let Process { stdin, stdout } = sandbox.attach().await.expect("the worker can be reached");
        Self { stdin, lines: BufReader::new(stdout).lines() }
    }

    /// As every host does: a half-written line of a former one must not merge with ours.
    pub(crate) async fn send(&mut self, line: &ToWorker) {
        let text = format!("\n{}\n", serde_json::to_string(line).expect("a line is plain data"));
        // A worker that has ended does not read, and says so by its output.
        let _ = self.stdin.write_all(text.as_bytes()).await;
    }

    async fn next(&mut self) -> Option<FromWorker> {
        let read = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = read.expect("the worker says something, or ends").expect("its output can be read")?;
        Some(FromWorker::parse(&line).expect("every line is the worker's"))
    }

    /// Waits for a line of this type.
    pub(crate) async fn until(&mut self, line_type: &str) -> FromWorker {
        loop {
            let line = self.next().await.unwrap_or_else(|| panic!("it ended without {line_type}"));
            if line.line_type == line_type {
                return line;
            }
        }
    }

    /// Everything up to the end.
    pub(crate) async fn rest(&mut self) -> Vec<FromWorker> {
        let mut lines = Vec::new();
        while let Some(line) = self.next().await {
            lines.push(line);
        }
        lines
    }
}

/// The seal that the worker measured.
pub(crate) fn measured(lines: &[FromWorker]) -> InsideSeal {
    let line = lines.iter().find(|line| line.line_type == worker_line::SEAL).expect("the seal is measured");
    serde_json::from_value(line.data.clone()).expect("a seal")
}

/// What the agent printed.
pub(crate) fn texts(lines: &[FromWorker]) -> Vec<&str> {
    let said = lines.iter().filter(|line| line.line_type == "agent.message");
    said.filter_map(|line| line.data["text"].as_str()).collect()
}

/// How the worker says that the agent ended.
pub(crate) fn end_of(lines: &[FromWorker]) -> Option<AgentEnd> {
    let last = lines.last().filter(|line| line.line_type == worker_line::EXITED)?;
    let exited: WorkerExited = serde_json::from_value(last.data.clone()).expect("the last line is ours");
    Some(exited.end)
}
