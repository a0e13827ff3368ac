//! Making a container: the plan, the folders, the engine's volumes, and the watcher.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use bollard::Docker;
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::CreateContainerOptions;
use cofferdam_core::Mode;

use super::body::{Parts, body};
use super::engine::{attach_stdin, is_missing, message_of};
use super::plan::{ContainerPlan, Started, label, name_of};
use super::sandbox::{DockerSandbox, exchange};
use super::{DockerBackend, watcher};
use crate::backend::{Attachment, CreateError, SandboxSpec, Workspace};
use crate::clock::now_ms;
use crate::container::{Bound, bounds, if_made, memories, workspace_bounds, write_users};
use crate::errors::failed;
use crate::folder::{Folder, Record};
use crate::local::{Identity, Layers, give, handed_over};
use crate::supervision::bytes_before;

/// How long an engine may take to make and start a container. It takes a third of a second; a busy machine takes longer.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) async fn create(
    backend: &DockerBackend,
    spec: &SandboxSpec,
) -> Result<DockerSandbox, CreateError> {
    let id = &spec.id;
    let engine = backend.engine()?.clone();
    let docker = engine.connect().await?;
    let state = backend.state_id().map_err(|error| failed(id, "name the state folder", &error))?;
    let folder = Folder::new(&backend.options.sandboxes(Mode::Docker), id);
    // A folder that is there already is another sandbox's, and nothing of it is touched.
    folder.create().map_err(|error| failed(id, "make the sandbox's folder", &error))?;
    let mut sandbox = DockerSandbox {
        exchange: exchange(folder, None, &backend.options),
        plan: None,
        engine,
        state,
        owner: Mutex::default(),
        stdin: Mutex::default(),
    };
    let made = tokio::time::timeout(DEADLINE, make(backend, &docker, spec, &mut sandbox)).await;
    let made = made.unwrap_or_else(|_| Err(CreateError::Deadline { id: id.clone(), within: DEADLINE }));
    if_made(sandbox, made).await
}

async fn make(
    backend: &DockerBackend,
    docker: &Docker,
    spec: &SandboxSpec,
    sandbox: &mut DockerSandbox,
) -> Result<(), CreateError> {
    let id = &spec.id;
    // Looked up a moment ago, when the policy was validated.
    let image = match backend.known_image(&spec.policy) {
        Some(image) => image,
        None => backend.image(docker, &spec.policy).await?,
    };
    let places = {
        let (folder, spec, state) =
            (sandbox.exchange.folder.clone(), spec.clone(), backend.options.state.clone());
        tokio::task::spawn_blocking(move || Places::make(&folder, &spec, &state))
    };
    let places =
        places.await.unwrap_or_else(|panic| Err(failed(&spec.id, "prepare", &io::Error::other(panic))))?;
    let io = |step: &'static str| move |error: io::Error| failed(id, step, &error);
    let labels = labels(&sandbox.state, spec);
    let plan = ContainerPlan {
        node: spec.node.clone(),
        engine: sandbox.engine.path().to_owned(),
        container: name_of(id),
        volumes: places.overlays.iter().map(|overlay| overlay.volume.clone()).collect(),
        attached: spec.attachment == Attachment::Attached,
        deadline_ms: now_ms().saturating_add(spec.policy.timeout_ms),
        most_bytes: spec.policy.limits.workspace_bytes.saturating_add(places.bytes),
        watched: places.watched.clone(),
        who: places.who,
        policy: spec.policy.clone(),
        layers: places.layers.clone(),
    };
    sandbox.exchange.folder.write(Record::Container, &plan).map_err(io("write the plan"))?;
    sandbox.exchange = exchange(sandbox.exchange.folder.clone(), Some(&plan), &backend.options);
    sandbox.plan = Some(plan);
    for overlay in &places.overlays {
        let request = VolumeCreateRequest {
            name: Some(overlay.volume.clone()),
            driver: Some("local".to_owned()),
            driver_opts: Some(overlay.options()),
            labels: Some(labels.clone()),
            ..VolumeCreateRequest::default()
        };
        let made = docker.create_volume(request).await;
        let made = made.map_err(|error| refused(spec, "make a volume", &error))?;
        // An engine that has a volume of that name answers with it, whatever it leads to.
        if made.labels != labels {
            return Err(failed(id, "make a volume", &io::ErrorKind::AlreadyExists.into()));
        }
    }
    let parts = Parts {
        policy: &spec.policy,
        image: &image,
        who: places.who,
        labels,
        command: backend.worker_command(&image),
        bounds: places.bounds(backend, &image, spec),
        memories: memories(spec, &places.who),
        volumes: places
            .overlays
            .iter()
            .map(|overlay| (overlay.volume.clone(), text(&overlay.target)))
            .collect(),
        stdin: true,
    };
    let options = CreateContainerOptions { name: Some(name_of(id)), ..CreateContainerOptions::default() };
    let made = docker.create_container(Some(options), body(parts)).await;
    let made = made.map_err(|error| refused(spec, "make the container", &error))?;
    // Before it starts, so that nothing runs that nobody watches.
    let attached = spec.attachment == Attachment::Attached;
    let owner = watcher::start(&sandbox.exchange.folder, &backend.options.binary, attached);
    sandbox.owner = Mutex::new(owner.map_err(io("start the watcher"))?);
    let name = name_of(id);
    // Its stdin is taken meanwhile: then its job is there as soon as it is.
    let (started, stdin) = tokio::join!(docker.start_container(&name, None), attach_stdin(docker, &name));
    sandbox.stdin = Mutex::new(stdin.ok());
    match started {
        Ok(()) => {
            let started = Started { container: made.id };
            sandbox.exchange.folder.write(Record::Started, &started).map_err(io("record the start"))
        }
        // The engine mounts volumes when it starts a container. If it was something else, a copy fails as well.
        Err(error) if !places.overlays.is_empty() => {
            Err(CreateError::NoOverlay { id: id.clone(), message: message_of(&error) })
        }
        Err(error) => Err(refused(spec, "start the container", &error)),
    }
}

fn refused(spec: &SandboxSpec, step: &str, error: &bollard::errors::Error) -> CreateError {
    let message = format!("the engine could not {step}: {}", message_of(error));
    if is_missing(error) {
        let remedy = format!("docker image inspect {}", spec.policy.container.image);
        return CreateError::Refused(crate::backend::Refusal::new(message, remedy));
    }
    CreateError::Failed { id: spec.id.clone(), message }
}

fn labels(state: &str, spec: &SandboxSpec) -> HashMap<String, String> {
    let attempt = spec.id.attempt();
    let pairs = [
        (label::STATE, state.to_owned()),
        (label::SANDBOX, spec.id.to_string()),
        (label::RUN, attempt.run.to_string()),
        (label::ATTEMPT, attempt.number.to_string()),
        (label::NODE, spec.node.to_string()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

/// An overlay that the engine mounts.
struct Overlay {
    volume: String,
    layers: Vec<PathBuf>,
    upper: PathBuf,
    work: PathBuf,
    target: PathBuf,
}

impl Overlay {
    /// What the engine gives to `mount`. Marks of removed and replaced folders are in attributes that an ordinary
    /// user can read, since the diff is taken by one.
    fn options(&self) -> HashMap<String, String> {
        let lower: Vec<String> = self.layers.iter().map(|path| text(path)).collect();
        let options = format!(
            "lowerdir={},upperdir={},workdir={},userxattr",
            lower.join(":"),
            text(&self.upper),
            text(&self.work)
        );
        [("type", "overlay"), ("device", "overlay"), ("o", options.as_str())]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    /// Whether `mount` would take a path for something else.
    fn is_ambiguous(&self) -> bool {
        let paths = self.layers.iter().chain([&self.upper, &self.work]);
        paths.into_iter().any(|path| path.to_str().is_none_or(|text| text.contains([',', ':', '\\', '"'])))
    }
}

/// Folders of the host that belong to this sandbox, and who the agent is.
struct Places {
    who: Identity,
    layers: Layers,
    overlays: Vec<Overlay>,
    watched: Vec<PathBuf>,
    /// What was in them before.
    bytes: u64,
    users: PathBuf,
    groups: PathBuf,
}

impl Places {
    fn make(folder: &Folder, spec: &SandboxSpec, state: &Path) -> Result<Self, CreateError> {
        let id = &spec.id;
        let who = Identity::of(&spec.workspace, state, id).map_err(|error| error.refusal(id))?;
        let places = Self::with(folder, spec, who)
            .map_err(|error| failed(id, "make the sandbox's folders", &error))?;
        if places.overlays.iter().any(Overlay::is_ambiguous) {
            let message = "a path has a comma, a colon or a backslash in its name".to_owned();
            return Err(CreateError::NoOverlay { id: id.clone(), message });
        }
        Ok(places)
    }

    fn with(folder: &Folder, spec: &SandboxSpec, who: Identity) -> io::Result<Self> {
        let make = |name: String, mode: u32| -> io::Result<PathBuf> {
            let path = folder.make(&name)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            if who.ids.is_some() {
                lchown(&path, Some(who.uid), Some(who.gid))?;
            }
            Ok(path)
        };
        let mut overlays = Vec::new();
        let workspace = match &spec.workspace {
            Workspace::Overlay { layers } => Some((layers, spec.target.clone())),
            Workspace::Folder { .. } | Workspace::Direct { .. } => None,
        };
        let companions = spec.companions.iter().map(|one| (&one.layers, one.target.clone()));
        for (number, (layers, target)) in workspace.into_iter().chain(companions).enumerate() {
            // The root of an overlay has the mode of its upper layer.
            let mode = layers.last().expect("an overlay has a layer").metadata()?.mode() & 0o7777;
            overlays.push(Overlay {
                volume: format!("{}-{number}", name_of(&spec.id)),
                layers: layers.clone(),
                upper: make(format!("upper-{number}"), mode)?,
                work: make(format!("work-{number}"), 0o700)?,
                target,
            });
        }
        let layers = match &spec.workspace {
            Workspace::Overlay { layers } => {
                Layers::Overlay { lower: layers.clone(), upper: overlays[0].upper.clone() }
            }
            Workspace::Folder { path } => {
                if who.ids.is_some() {
                    give(path, who.uid)?;
                }
                handed_over::record(folder, path)?;
                Layers::Folder { path: path.clone() }
            }
            Workspace::Direct { path, .. } => Layers::Folder { path: path.clone() },
        };
        let mut watched: Vec<PathBuf> = overlays.iter().map(|overlay| overlay.upper.clone()).collect();
        if let Layers::Folder { path } = &layers {
            watched.push(path.clone());
        }
        watched.extend(spec.kept.iter().map(|kept| kept.source.clone()));
        let (users, groups) = write_users(folder, &who)?;
        Ok(Self { who, layers, overlays, bytes: bytes_before(&watched), watched, users, groups })
    }

    fn bounds(&self, backend: &DockerBackend, image: &super::image::Image, spec: &SandboxSpec) -> Vec<Bound> {
        let mut all = bounds(spec, backend.mounted_binary(image), &self.users, &self.groups);
        all.extend(workspace_bounds(spec));
        all
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
