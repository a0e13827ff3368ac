//! Making a sandbox: the plan, the folders, and the shim that starts it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use cofferdam_core::{LimitsRule, MountAccess, Policy, Storage, WorkspaceAccess, inside};

use crate::backend::{Cover, CreateError, SandboxSpec, Workspace};
use crate::errors::failed;
use crate::folder::{Folder, Record};
use crate::linux::plan::{Access, CgroupPlan, Entry, IdRange, LaunchPlan, Owner};
use crate::linux::{Holder, covers, fixed_size, holder, ids, limits_of, refusal, system};
use crate::local::handed_over;
use crate::local::{Agent, Layers, LocalExchange, check_owner, give};
use crate::machine_name::machine_name;
use crate::options::Options;
use crate::supervision::{Inner, ShimPlan, ShimSandbox, discard, start};

pub(super) async fn create(
    options: &Options,
    storage: Storage,
    folder: Folder,
    spec: &SandboxSpec,
) -> Result<ShimSandbox, CreateError> {
    let id = spec.id.clone();
    // A folder that is there already is another sandbox's, and nothing of it is touched.
    folder.create().map_err(|error| failed(&id, "make the sandbox's folder", &error))?;
    let prepared = {
        let (options, folder, spec) = (options.clone(), folder.clone(), spec.clone());
        tokio::task::spawn_blocking(move || prepare(&options, storage, &folder, &spec))
    };
    let prepared =
        prepared.await.unwrap_or_else(|panic| Err(failed(&id, "prepare", &io::Error::other(panic))));
    let exchange = LocalExchange::unplanned(folder, Agent::Namespace, options);
    match prepared {
        Ok((layers, command)) => start(LocalExchange { layers, ..exchange }, &command, spec.attachment).await,
        Err(error) => {
            discard(exchange).await;
            Err(error)
        }
    }
}

/// Writes down what the shim and the launcher are to do. Returns the layers and the shim's command.
fn prepare(
    options: &Options,
    storage: Storage,
    folder: &Folder,
    spec: &SandboxSpec,
) -> Result<(Layers, Vec<String>), CreateError> {
    let id = &spec.id;
    let policy = &spec.policy;
    let limits = limits_of(policy);
    check_owner(&spec.workspace).map_err(|error| error.refusal(id))?;
    let (cgroup, mut command, limits_note) = match holder(&machine_name(&options.state, id), &limits) {
        Holder::Group(plan) => (Some(plan), Vec::new(), None),
        Holder::Scope(command) => (Some(CgroupPlan::SystemdScope), command, None),
        Holder::Nobody(why) if policy.limits_rule == LimitsRule::BestEffort => {
            (None, Vec::new(), Some(best_effort(&why)))
        }
        Holder::Nobody(why) => return Err(refusal::no_limits(&why).into()),
    };
    let io = |step: &'static str| move |error: io::Error| failed(id, step, &error);
    let root = rustix::process::geteuid().is_root();
    let range =
        root.then(|| ids::take(&options.state.join("ids"), id)).transpose().map_err(io("take ids"))?;
    let own = storage == Storage::Memory;
    if own {
        let limit_bytes = policy.limits.workspace_bytes;
        fixed_size::make(folder, limit_bytes).map_err(io("make a file system of a fixed size"))?;
    }
    let below = if own { fixed_size::FOLDER } else { "" };
    let places = Places::make(folder, below, spec, range).map_err(io("make the sandbox's folders"))?;
    let plan = LaunchPlan {
        id: id.clone(),
        network: policy.network,
        ids: range,
        entries: entries(options, spec, &places).map_err(io("look at what is mounted"))?,
        arguments: vec!["worker".to_owned()],
        cgroup: cgroup.clone(),
        limits,
        limits_note,
        workspace_bytes: policy.limits.workspace_bytes,
        // A copy of the repository and what an agent keeps are elsewhere.
        fixed_size: own && places.watched.iter().all(|path| path.starts_with(folder.path())),
        without: options.without.clone(),
    };
    let shim = ShimPlan {
        cgroup: if plan.without.has("limits:cgroup") { None } else { cgroup },
        limits,
        ..ShimPlan::new(spec, Inner::Native, places.watched, &places.layers)
    };
    let plan = if plan.without.has("limits:cgroup") { LaunchPlan { cgroup: None, ..plan } } else { plan };
    let plan = if plan.without.has("mounts:system") { with_writable_system(plan) } else { plan };
    folder.write(Record::Plan, &plan).map_err(io("write the plan"))?;
    folder.write(Record::Shim, &shim).map_err(io("write the plan"))?;
    fs::File::create(folder.worker_output()).map_err(io("make the output file"))?;
    command.extend([path_text(&options.binary), "shim".to_owned(), path_text(folder.path())]);
    Ok((places.layers, command))
}

/// For the test that the seal notices it, though Landlock closes the system as well.
fn with_writable_system(mut plan: LaunchPlan) -> LaunchPlan {
    for entry in &mut plan.entries {
        if let Entry::Bind { target, access, .. } = entry
            && target == Path::new("/usr")
        {
            *access = Access::ReadWrite;
        }
    }
    plan
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn best_effort(why: &str) -> String {
    format!("memory is watched, processes are counted, the processor is not limited: {why}")
}

/// Folders of the host that belong to this sandbox.
struct Places {
    home: PathBuf,
    tmp: PathBuf,
    layers: Layers,
    /// Upper and work folder of each overlay: the workspace's first, then the companions'.
    overlays: Vec<(PathBuf, PathBuf)>,
    watched: Vec<PathBuf>,
}

impl Places {
    /// Makes them in a folder of the sandbox's own.
    fn make(folder: &Folder, below: &str, spec: &SandboxSpec, range: Option<IdRange>) -> io::Result<Self> {
        let make = |name: &str, mode: u32| -> io::Result<PathBuf> {
            let path = folder.make(Path::new(below).join(name))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            if let Some(range) = range {
                let id = Some(range.host(inside::UID));
                lchown(&path, id, id)?;
            }
            Ok(path)
        };
        let (home, tmp) = (make("home", 0o755)?, make("tmp", 0o1777)?);
        let mut overlays = Vec::new();
        let first = usize::from(!matches!(spec.workspace, Workspace::Overlay { .. }));
        for number in first..=spec.companions.len() {
            // The root of an overlay has the mode of its upper layer.
            let mode = overlay_root(spec, number).metadata()?.mode() & 0o7777;
            overlays.push((make(&format!("upper-{number}"), mode)?, make(&format!("work-{number}"), 0o700)?));
        }
        let layers = match &spec.workspace {
            Workspace::Overlay { layers } => {
                Layers::Overlay { lower: layers.clone(), upper: overlays[0].0.clone() }
            }
            Workspace::Folder { path } => {
                if let Some(range) = range {
                    give(path, range.host(inside::UID))?;
                }
                handed_over::record(folder, path)?;
                Layers::Folder { path: path.clone() }
            }
            Workspace::Direct { path, .. } => Layers::Folder { path: path.clone() },
        };
        let mut watched = vec![home.clone(), tmp.clone()];
        watched.extend(overlays.iter().map(|(upper, _)| upper.clone()));
        watched.extend(match &spec.workspace {
            Workspace::Overlay { .. } => None,
            Workspace::Folder { path } | Workspace::Direct { path, .. } => Some(path.clone()),
        });
        watched.extend(spec.kept.iter().map(|kept| kept.source.clone()));
        Ok(Self { home, tmp, layers, overlays, watched })
    }
}

/// The lowest layer of the overlay with this number: 0 is the workspace's, the companions' follow.
fn overlay_root(spec: &SandboxSpec, number: usize) -> &Path {
    let layers = match (&spec.workspace, number) {
        (Workspace::Overlay { layers }, 0) => layers,
        (Workspace::Folder { path } | Workspace::Direct { path, .. }, 0) => return path,
        (_, number) => &spec.companions[number - 1].layers,
    };
    layers.last().expect("an overlay has a layer")
}

fn entries(options: &Options, spec: &SandboxSpec, places: &Places) -> io::Result<Vec<Entry>> {
    let policy = &spec.policy;
    let mut entries = vec![Entry::Proc { path: "/proc".into() }];
    entries.extend(system::kernel_facts());
    entries.extend(system::entries(&options.caller, policy.network));
    entries.push(Entry::bind(&options.binary, inside::BINARY, Access::ReadOnly));
    entries.extend(spec.shown().map(|shown| Entry::bind(&shown.source, shown.target, Access::ReadOnly)));
    entries.push(Entry::Memory { path: inside::CANARY.into(), bytes: 64 << 10 });
    entries.push(Entry::bind(&places.home, inside::HOME, Access::ReadWrite));
    entries.push(Entry::bind(&places.tmp, inside::TMP, Access::ReadWrite));
    entries.extend(caller_mounts(policy)?);
    // The repository is seen through its mask or not at all, and the state never.
    for private in spec.alias.iter().chain([&options.state]) {
        // Where the workspace itself is put, nothing else is seen.
        let seen = covers(&entries, private).into_iter();
        entries.extend(seen.filter(|entry| !matches!(entry, Entry::Empty { path } if *path == spec.target)));
    }
    let access = workspace_access(options, policy);
    let mut overlays = places.overlays.iter();
    match &spec.workspace {
        Workspace::Overlay { layers } => {
            entries.push(overlay(layers, overlays.next(), &spec.target, access)?);
        }
        Workspace::Folder { path } => {
            let (source, target) = (path.clone(), spec.target.clone());
            entries.push(Entry::Bind { source, target, access, owner: None });
        }
        Workspace::Direct { path, covers } => {
            entries.push(owned(path, &spec.target, access)?);
            let cover = |cover: &Cover| Entry::Bind {
                source: cover.with.clone(),
                target: spec.target.join(&cover.path),
                access: Access::ReadOnly,
                owner: None,
            };
            entries.extend(covers.iter().map(cover));
        }
    }
    for kept in &spec.kept {
        entries.push(owned(&kept.source, &kept.target, Access::ReadWrite)?);
    }
    // What the repository's own git writes is a part of the project.
    for companion in &spec.companions {
        entries.push(overlay(&companion.layers, overlays.next(), &companion.target, access)?);
    }
    for path in &spec.read_only {
        let owner = Some(Owner::of(path)?);
        let (source, target) = (path.clone(), path.clone());
        entries.push(Entry::Bind { source, target, access: Access::ReadOnly, owner });
    }
    // In a folder that the agent may write, the link would only be a way to plant something at its path.
    let private = [inside::TMP, inside::HOME, inside::WORKSPACE, inside::RUN, "/proc", "/dev"];
    let is_private = |alias: &&PathBuf| private.iter().any(|path| alias.starts_with(path));
    if let Some(alias) = spec.alias.as_ref().filter(|alias| !is_private(alias) && **alias != spec.target) {
        entries.push(Entry::Link { path: alias.clone(), target: spec.target.clone() });
    }
    Ok(entries)
}

/// What the agent may do to the workspace and its companions.
fn workspace_access(options: &Options, policy: &Policy) -> Access {
    match policy.workspace_access {
        // For the test that the seal notices it, though Landlock closes the workspace as well.
        WorkspaceAccess::ReadOnly if options.without.has("mounts:workspace") => Access::ReadWrite,
        WorkspaceAccess::ReadOnly => Access::ReadOnly,
        WorkspaceAccess::ReadWrite => Access::ReadWrite,
    }
}

/// A folder whose owner is the agent inside.
fn owned(source: &Path, target: &Path, access: Access) -> io::Result<Entry> {
    let owner = Some(Owner::of(source)?);
    let (source, target) = (source.to_owned(), target.to_owned());
    Ok(Entry::Bind { source, target, access, owner })
}

fn caller_mounts(policy: &Policy) -> io::Result<Vec<Entry>> {
    let entry = |mount: &cofferdam_core::Mount| {
        let access = match mount.access {
            MountAccess::Ro => Access::ReadOnly,
            MountAccess::Rw => Access::ReadWrite,
        };
        let owner = Some(Owner::of(&mount.path)?);
        Ok(Entry::Bind { source: mount.path.clone(), target: mount.path.clone(), access, owner })
    };
    policy.mounts.iter().map(entry).collect()
}

fn overlay(
    layers: &[PathBuf],
    own: Option<&(PathBuf, PathBuf)>,
    target: &Path,
    access: Access,
) -> io::Result<Entry> {
    let (upper, work) = own.expect("an overlay has folders of its own").clone();
    let lowest = layers.last().expect("an overlay has a layer");
    let owner = Some(Owner::of(lowest)?);
    Ok(Entry::Overlay { layers: layers.to_vec(), upper, work, target: target.to_owned(), owner, access })
}
