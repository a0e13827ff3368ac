//! Making a container: the plan, the folders, and the shim that starts the runtime's client.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::{Mode, inside};

use super::AppleBackend;
use super::arguments::{Parts, arguments};
use super::plan::ApplePlan;
use super::sandbox::AppleSandbox;
use crate::backend::{CreateError, SandboxSpec, Workspace};
use crate::container::{Bound, bounds, if_made, memories, workspace_bounds, write_users};
use crate::errors::failed;
use crate::folder::{Folder, Record};
use crate::local::{Agent, Identity, Layers, LocalExchange, NoIdentity, give, handed_over};
use crate::machine_name::machine_name;
use crate::supervision::{Inner, ShimPlan, ShimSandbox, start_shim};

/// How long a runtime may take to start a container. It takes half a second, a virtual machine a few.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) async fn create(backend: &AppleBackend, spec: &SandboxSpec) -> Result<AppleSandbox, CreateError> {
    let id = &spec.id;
    let path = match &spec.workspace {
        Workspace::Folder { path } | Workspace::Direct { path, .. } if spec.companions.is_empty() => {
            path.clone()
        }
        Workspace::Folder { .. } | Workspace::Direct { .. } | Workspace::Overlay { .. } => {
            let message = "runtimes mount folders and no overlays of ours".to_owned();
            return Err(CreateError::NoOverlay { id: id.clone(), message });
        }
    };
    let folder = Folder::new(&backend.options.sandboxes(Mode::Apple), id);
    // A folder that is there already is another sandbox's, and nothing of it is touched.
    folder.create().map_err(|error| failed(id, "make the sandbox's folder", &error))?;
    let exchange = LocalExchange::unplanned(folder, Agent::Container(None), &backend.options);
    let exchange = LocalExchange { layers: Layers::Folder { path: path.clone() }, ..exchange };
    let mut sandbox = AppleSandbox { shim: ShimSandbox { exchange, _owner: None }, plan: None };
    let made = make(backend, spec, &path, &mut sandbox).await;
    if_made(sandbox, made).await
}

async fn make(
    backend: &AppleBackend,
    spec: &SandboxSpec,
    workspace: &Path,
    sandbox: &mut AppleSandbox,
) -> Result<(), CreateError> {
    let id = &spec.id;
    let folder = sandbox.shim.folder().clone();
    let runtime = backend.runtime(&spec.policy)?;
    let abilities = backend.abilities(&runtime).await?;
    let image = backend.image(&runtime, &spec.policy).await?;
    let places = {
        let (folder, spec, state) = (folder.clone(), spec.clone(), backend.options.state.clone());
        tokio::task::spawn_blocking(move || Places::make(&folder, &spec, &state))
    };
    let places = places.await.unwrap_or_else(|panic| Err(NoIdentity::Io(io::Error::other(panic))));
    let places = places.map_err(|error| error.refusal(id))?;
    let mut shown = bounds(spec, Some(&backend.options.binary), &places.users, &places.groups);
    shown.extend(places.hosts.iter().map(|hosts| Bound::read_only(hosts, "/etc/hosts")));
    shown.extend(workspace_bounds(spec));
    // Runtimes are told to remove a container by its name.
    let container = machine_name(&backend.options.state, id);
    let attempt = id.attempt();
    let parts = Parts {
        policy: &spec.policy,
        abilities: &abilities,
        name: &container,
        who: places.who,
        root: rustix::process::geteuid().is_root(),
        labels: vec![
            ("dev.cofferdam.sandbox", id.to_string()),
            ("dev.cofferdam.run", attempt.run.to_string()),
            ("dev.cofferdam.attempt", attempt.number.to_string()),
            ("dev.cofferdam.node", spec.node.to_string()),
        ],
        bounds: shown,
        memories: memories(spec, &places.who),
        volumes: &image.volumes,
        command: vec![inside::BINARY.to_owned(), "worker".to_owned()],
    };
    let arguments = arguments(&parts)?;
    let inner = Inner::Runtime { runtime: runtime.clone(), container: container.clone(), arguments };
    let kept = spec.kept.iter().map(|kept| &*kept.source);
    let watched = [workspace].into_iter().chain(kept).map(Path::to_owned).collect();
    let shim = ShimPlan::new(spec, inner, watched, &sandbox.shim.exchange.layers);
    let plan = ApplePlan { runtime, container, who: places.who, policy: spec.policy.clone() };
    let io = |step: &'static str| move |error: io::Error| failed(id, step, &error);
    folder.write(Record::Container, &plan).map_err(io("write the plan"))?;
    folder.write(Record::Shim, &shim).map_err(io("write the shim's plan"))?;
    fs::File::create(folder.worker_output()).map_err(io("make the worker's output"))?;
    sandbox.plan = Some(plan);
    sandbox.shim.exchange.agent = Agent::Container(Some(places.who));
    let binary = backend.options.binary.display().to_string();
    let command = [binary, "shim".to_owned(), folder.path().display().to_string()];
    sandbox.shim._owner = start_shim(&folder, &command, spec.attachment, DEADLINE).await?;
    Ok(())
}

/// Who the agent is, and the files that say so inside.
struct Places {
    who: Identity,
    users: PathBuf,
    groups: PathBuf,
    /// Podman shows this machine's own names otherwise. A container with a network needs what the runtime writes there.
    hosts: Option<PathBuf>,
}

impl Places {
    fn make(folder: &Folder, spec: &SandboxSpec, state: &Path) -> Result<Self, NoIdentity> {
        let who = Identity::of(&spec.workspace, state, &spec.id)?;
        if let (Workspace::Folder { path }, Some(_)) = (&spec.workspace, who.ids) {
            give(path, who.uid)?;
        }
        if let Workspace::Folder { path } = &spec.workspace {
            handed_over::record(folder, path)?;
        }
        let (users, groups) = write_users(folder, &who)?;
        let hosts = spec.policy.network.is_closed().then(|| folder.path().join("hosts"));
        if let Some(hosts) = &hosts {
            fs::write(hosts, "127.0.0.1 localhost cofferdam\n::1 localhost cofferdam\n")?;
            fs::set_permissions(hosts, fs::Permissions::from_mode(0o644))?;
        }
        Ok(Self { who, users, groups, hosts })
    }
}
