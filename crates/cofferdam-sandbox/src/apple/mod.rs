//! The apple backend: a throw-away container per attempt, by a program with a command line like `docker`'s: Apple's
//! `container`, podman, nerdctl, docker itself.
//!
//! Programs differ in what they can do, so each is asked (`abilities.rs`), and what the policy needs and it lacks is
//! refused. The rest is as in every sandbox: the shim owns the worker's stdio, with the program's client in between
//! (`driver.rs`), our worker puts up walls of its own, and the seal is measured from inside.

mod abilities;
mod arguments;
mod check;
mod create;
mod driver;
mod image;
mod plan;
mod runtime;
mod sandbox;
mod socket_trial;
mod validate;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use cofferdam_core::{
    ContainerPolicy, ImageReference, Mode, NodeId, Policy, RuntimeCommand, SandboxId, WORKER_PIDS, WallPlan,
};

use crate::backend::{Backend, CreateError, Finding, Listed, OpenError, Refusal, Sandbox, SandboxSpec};
use crate::container;
use crate::folder::{Folder, Record};
use crate::local::{Agent, list};
use crate::options::Options;
use crate::supervision::{Runtime, open_shim_sandbox};
use crate::walls::worker_walls;
use abilities::Abilities;
pub use driver::runtime_client_main;
pub(crate) use driver::supervise;
use image::Image;
use plan::ApplePlan;
use sandbox::AppleSandbox;

/// Makes containers with a command.
pub struct AppleBackend {
    options: Options,
    /// What containers are made of where nobody has a policy: for [`Backend::check`].
    container: ContainerPolicy,
    /// What was found out about programs and their images: an attempt asks several times.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    abilities: BTreeMap<PathBuf, Abilities>,
    images: BTreeMap<(PathBuf, ImageReference), Image>,
}

impl AppleBackend {
    /// A backend with these options. Which program it uses, the policy says.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, container: ContainerPolicy::default(), known: Mutex::default() }
    }

    /// The same, with the settings that [`Backend::check`] is to look at.
    #[must_use]
    pub fn with_container(mut self, container: ContainerPolicy) -> Self {
        self.container = container;
        self
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn runtime(&self, policy: &Policy) -> Result<Runtime, Refusal> {
        let command: &RuntimeCommand = &policy.container.runtime_command;
        Runtime::find(command, &self.options.caller)
    }

    /// What the runtime can do; asked once.
    async fn abilities(&self, runtime: &Runtime) -> Result<Abilities, Refusal> {
        if let Some(found) = self.known().abilities.get(&runtime.program) {
            return Ok(found.clone());
        }
        let asked = runtime.clone();
        let found = tokio::task::spawn_blocking(move || Abilities::of(&asked)).await;
        let found = found.unwrap_or_else(|panic| {
            Err(Refusal::new(panic.to_string(), format!("{} run --help", runtime.name())))
        })?;
        self.known().abilities.insert(runtime.program.clone(), found.clone());
        Ok(found)
    }

    /// What was found out about the runtime of a policy that was validated.
    fn known_abilities(&self, policy: &Policy) -> Option<Abilities> {
        let runtime = self.runtime(policy).ok()?;
        self.known().abilities.get(&runtime.program).cloned()
    }

    async fn image(&self, runtime: &Runtime, policy: &Policy) -> Result<Image, Refusal> {
        let kind = self.abilities(runtime).await?.kind;
        let image = Image::find(runtime, kind, policy).await?;
        let key = (runtime.program.clone(), policy.container.image.clone());
        self.known().images.insert(key, image.clone());
        Ok(image)
    }
}

#[async_trait]
impl Backend for AppleBackend {
    fn mode(&self) -> Mode {
        Mode::Apple
    }

    async fn check(&self, node: &NodeId) -> Vec<Finding> {
        check::check(self, node).await
    }

    async fn validate(&self, policy: &Policy) -> Result<(), Refusal> {
        validate::validate(self, policy).await
    }

    fn wall_plan(&self, _id: &SandboxId, policy: &Policy, companions: &[PathBuf]) -> WallPlan {
        let counted = self.known_abilities(policy).is_none_or(|abilities| abilities.counts_processes());
        let processes = u64::from(policy.limits.pids) + WORKER_PIDS;
        WallPlan {
            processes: (!counted && !self.options.without.has("limits:cgroup")).then_some(processes),
            ..worker_walls(policy, companions, &self.options.without)
        }
    }

    fn base_env(&self, policy: &Policy) -> BTreeMap<String, String> {
        let program = self.runtime(policy).map(|runtime| runtime.program).unwrap_or_default();
        let known = self.known();
        let image = known.images.get(&(program, policy.container.image.clone()));
        let env = image.map(|image| image.env.as_slice()).unwrap_or_default();
        container::base_env(env, &self.options.caller.locale)
    }

    fn host_name(&self, policy: &Policy) -> Option<&str> {
        self.known_abilities(policy)?.host_name()
    }

    /// A runtime's command has no volumes of ours.
    fn can_layer(&self, _owner: u32) -> bool {
        false
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        create::create(self, spec).await.map(|sandbox| Box::new(sandbox) as Box<dyn Sandbox>)
    }

    async fn list(&self) -> Result<Vec<Listed>, OpenError> {
        list(&self.options.sandboxes(Mode::Apple), Record::Shim)
    }

    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError> {
        let folder = Folder::new(&self.options.sandboxes(Mode::Apple), id);
        let error = |source: io::Error| OpenError::Io { id: id.clone(), action: "read the plan", source };
        let plan: Option<ApplePlan> = folder.read(Record::Container).map_err(error)?;
        let agent = Agent::Container(plan.as_ref().map(|plan| plan.who));
        let sandbox = AppleSandbox { shim: open_shim_sandbox(folder, agent, &self.options)?, plan };
        sandbox.end_if_abandoned().await?;
        Ok(Box::new(sandbox))
    }
}
