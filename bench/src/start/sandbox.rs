//! A sandbox through the library: from asking for it to the worker's first line.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, ensure};
use cofferdam_core::{AttemptRef, LimitsRule, NodeId, Policy, RunId, SandboxId, worker_line};
use cofferdam_sandbox::native::NativeBackend;
use cofferdam_sandbox::{Attachment, Backend, Caller, Options, SandboxSpec, Workspace};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::runtime::Runtime;

use super::Contestant;
use super::user::User;

pub(super) struct Create {
    runtime: Runtime,
    backend: NativeBackend,
    repository: PathBuf,
    count: u128,
}

impl Create {
    pub(super) fn new(user: &User, binary: &Path, repository: &Path) -> anyhow::Result<Self> {
        // The caller's own home is given, so that their toolchains are mounted as in a run of theirs.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let caller = Caller { home, ..Caller::default() };
        let options = Options::new(user.folder().join("library"), binary.to_owned(), caller);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self {
            runtime,
            backend: NativeBackend::new(options),
            repository: repository.to_owned(),
            count: 0,
        })
    }

    fn spec(&mut self) -> anyhow::Result<SandboxSpec> {
        self.count += 1;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        let run = RunId::new(u64::try_from(now)?, self.count);
        Ok(SandboxSpec {
            node: NodeId::new(u64::try_from(now)?, self.count),
            id: SandboxId::of(&AttemptRef { run, number: 1 }),
            policy: Policy { limits_rule: LimitsRule::BestEffort, ..Policy::default() },
            workspace: Workspace::Overlay { layers: vec![self.repository.clone()] },
            target: cofferdam_core::inside::WORKSPACE.into(),
            kept: Vec::new(),
            companions: Vec::new(),
            read_only: Vec::new(),
            shown: Vec::new(),
            egress: None,
            alias: None,
            attachment: Attachment::Attached,
        })
    }
}

impl Contestant for Create {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let spec = self.spec()?;
        self.runtime.block_on(async {
            let started = Instant::now();
            let sandbox = self.backend.create(&spec).await.context("the sandbox was not made")?;
            let process = sandbox.attach().await?;
            let mut line = String::new();
            BufReader::new(process.stdout).read_line(&mut line).await?;
            let time = started.elapsed();
            ensure!(line.contains(worker_line::STARTED), "unexpected first line: {line}");
            sandbox.destroy().await?;
            Ok(time)
        })
    }
}
