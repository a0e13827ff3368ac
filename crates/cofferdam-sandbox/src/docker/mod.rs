//! The docker backend: a throw-away container per attempt, through the engine's own interface.
//!
//! The engine puts up its walls (`body.rs` names each), our worker puts up ours on top, and the seal is measured as
//! everywhere. What an engine cannot hold, `validate` refuses.

mod body;
mod build;
mod check;
mod create;
mod driver;
mod engine;
mod first_process;
mod image;
mod image_binary;
mod known_engine;
mod layers;
mod log;
mod plan;
mod sandbox;
mod socket_trial;
mod state_id;
mod throwaway;
mod validate;
mod watcher;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use bollard::Docker;
use bollard::query_parameters::ListContainersOptions;
use cofferdam_core::{
    ContainerPolicy, EngineAddress, ImageReference, Mode, NodeId, Policy, SandboxId, WallPlan, inside,
};

use crate::backend::{
    Backend, CreateError, Finding, Listed, OpenError, Refusal, RefusalKind, Sandbox, SandboxSpec,
};
use crate::container;
pub use crate::container::{try_mount_main, try_socket_main};
use crate::folder::{Folder, Record};
use crate::local::{Identity, list};
use crate::options::Options;
use crate::walls::worker_walls;
pub use build::{Build, BuildError, BuildProgress, Built, DOCKERFILE, PROXY_VARIABLES, build};
pub use check::engine_finding;
use engine::Engine;
use image::Image;
pub use layers::Layer;
use plan::{ContainerPlan, label};
use sandbox::{DockerSandbox, exchange};
pub use watcher::watcher_main;

/// Makes containers.
pub struct DockerBackend {
    options: Options,
    /// Where the engine is, or why that is not known: it matters only to who wants to use it.
    address: Result<EngineAddress, Refusal>,
    engine: Result<Engine, Refusal>,
    /// What containers are made of where nobody has a policy: for [`Backend::check`].
    container: ContainerPolicy,
    /// What was found out about images, by name: an attempt asks several times.
    images: Mutex<BTreeMap<ImageReference, Image>>,
}

impl DockerBackend {
    /// A backend with these options, and the address of its engine.
    #[must_use]
    pub fn new(options: Options, address: Result<EngineAddress, Refusal>) -> Self {
        let engine = address.clone().and_then(|address| Engine::at_address(&address));
        Self { options, address, engine, container: ContainerPolicy::default(), images: Mutex::default() }
    }

    /// The same, with the settings that [`Backend::check`] is to look at.
    #[must_use]
    pub fn with_container(mut self, container: ContainerPolicy) -> Self {
        self.container = container;
        self
    }

    fn engine(&self) -> Result<&Engine, Refusal> {
        self.engine.as_ref().map_err(Clone::clone)
    }

    async fn connect(&self) -> Result<Docker, Refusal> {
        let engine = self.engine()?;
        engine.connect().await.map_err(|refusal| {
            let is_gone = refusal.kind == RefusalKind::DaemonUnavailable && !engine.path().exists();
            if is_gone && !self.has_programs() { refusal.about(RefusalKind::RuntimeMissing) } else { refusal }
        })
    }

    /// Whether anything of an engine is installed: one that was stopped leaves no socket either.
    fn has_programs(&self) -> bool {
        let usual = ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
        let folders = self.options.caller.path.iter().chain(&usual).filter(|folder| folder.is_absolute());
        let named = |folder: &PathBuf| ["docker", "dockerd", "podman"].map(|name| folder.join(name));
        folders.flat_map(named).any(|path| path.is_file())
    }

    fn state_id(&self) -> io::Result<String> {
        state_id::state_id(&self.options.state)
    }

    async fn image(&self, docker: &Docker, policy: &Policy) -> Result<Image, Refusal> {
        let image = Image::find(docker, policy).await?;
        let mut images = self.images.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        images.insert(policy.container.image.clone(), image.clone());
        Ok(image)
    }

    /// What is known of the policy's image without asking.
    fn known_image(&self, policy: &Policy) -> Option<Image> {
        let images = self.images.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        images.get(&policy.container.image).cloned()
    }

    /// Our binary on the host, if it runs in this image.
    fn mounted_binary(&self, image: &Image) -> Option<&Path> {
        let runs = image_binary::runs_here(image) && !self.options.without.has("mounted_binary");
        runs.then_some(self.options.binary.as_path())
    }

    fn worker_command(&self, image: &Image) -> Vec<String> {
        let mounted = self.mounted_binary(image).is_some();
        let program = if mounted { inside::BINARY } else { image_binary::IN_IMAGE };
        vec![program.to_owned(), "worker".to_owned()]
    }

    /// Containers at the engine that are of this state folder, by their labels.
    async fn labelled(&self) -> Vec<Listed> {
        let (Ok(docker), Ok(state)) = (self.connect().await, self.state_id()) else { return Vec::new() };
        throwaway::remove_left(&docker, &state).await;
        let filters = HashMap::from([("label".to_owned(), vec![format!("{}={state}", label::STATE)])]);
        let options =
            ListContainersOptions { all: true, filters: Some(filters), ..ListContainersOptions::default() };
        let found = docker.list_containers(Some(options)).await.unwrap_or_default();
        let listed = |labels: HashMap<String, String>| -> Option<Listed> {
            let id = labels.get(label::SANDBOX)?.parse().ok()?;
            Some(Listed { id, node: labels.get(label::NODE).and_then(|node| node.parse().ok()) })
        };
        found.into_iter().filter_map(|container| listed(container.labels?)).collect()
    }
}

#[async_trait]
impl Backend for DockerBackend {
    fn mode(&self) -> Mode {
        Mode::Docker
    }

    async fn check(&self, node: &NodeId) -> Vec<Finding> {
        check::check(self, node).await
    }

    async fn validate(&self, policy: &Policy) -> Result<(), Refusal> {
        validate::validate(self, policy).await
    }

    fn wall_plan(&self, _id: &SandboxId, policy: &Policy, companions: &[PathBuf]) -> WallPlan {
        worker_walls(policy, companions, &self.options.without)
    }

    fn base_env(&self, policy: &Policy) -> BTreeMap<String, String> {
        let images = self.images.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let image = images.get(&policy.container.image);
        let env = image.map(|image| image.env.as_slice()).unwrap_or_default();
        container::base_env(env, &self.options.caller.locale)
    }

    fn host_name(&self, _policy: &Policy) -> Option<&str> {
        Some(container::HOST_NAME)
    }

    fn can_layer(&self, owner: u32) -> bool {
        Identity::owns(owner)
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        create::create(self, spec).await.map(|sandbox| Box::new(sandbox) as Box<dyn Sandbox>)
    }

    async fn list(&self) -> Result<Vec<Listed>, OpenError> {
        let parent = self.options.sandboxes(Mode::Docker);
        // Where no container was ever made, no engine is asked. The first may have been one that was only tried.
        if !parent.exists() && !self.options.state.join(state_id::FILE).exists() {
            return Ok(Vec::new());
        }
        let mut all = list(&parent, Record::Container)?;
        for one in self.labelled().await {
            if !all.iter().any(|known| known.id == one.id) {
                all.push(one);
            }
        }
        Ok(all)
    }

    async fn open(&self, id: &SandboxId) -> Result<Box<dyn Sandbox>, OpenError> {
        let folder = Folder::new(&self.options.sandboxes(Mode::Docker), id);
        if !folder.exists() && !self.labelled().await.iter().any(|one| one.id == *id) {
            return Err(OpenError::NotFound(id.clone()));
        }
        let error = |action| move |source| OpenError::Io { id: id.clone(), action, source };
        if !folder.exists() {
            // A container whose folder somebody removed: the folder comes back, to be removed with it.
            folder.create().map_err(error("make the folder"))?;
        }
        let plan: Option<ContainerPlan> = folder.read(Record::Container).map_err(error("read the plan"))?;
        let engine = match &plan {
            Some(plan) => {
                let own = self.engine().ok().filter(|own| own.path() == plan.engine);
                own.cloned().unwrap_or_else(|| Engine::at(&plan.engine))
            }
            None => self
                .engine()
                .cloned()
                .map_err(|refusal| error("reach the engine")(io::Error::other(refusal)))?,
        };
        if let Some(plan) = &plan {
            // Whoever opens it is not who made it, so the pipe of a new watcher is closed at once.
            watcher::ensure(&folder, &self.options.binary, plan.attached)
                .map_err(error("watch the container"))?;
        }
        let state = self.state_id().map_err(error("name the state folder"))?;
        let exchange = exchange(folder, plan.as_ref(), &self.options);
        let (owner, stdin) = (Mutex::default(), Mutex::default());
        Ok(Box::new(DockerSandbox { exchange, plan, engine, state, owner, stdin }))
    }
}
