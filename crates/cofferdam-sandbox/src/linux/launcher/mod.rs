//! The launcher: a single-threaded process that builds one sandbox and stays as its parent.
//!
//! A shim forks it before it has a second thread; for a tool it is a role of the binary, taken in `main` before
//! anything else starts. Both because it forks with a raw `clone` itself. Read [`launch_and_wait`] for the parent's
//! side and `child` for the side that becomes the worker.

mod child;
mod maker;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cofferdam_core::{DiskLimit, NamespaceFact, OutsideSeal};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use super::cgroup::{self, Way};
use super::id_map::write_maps;
use super::plan::{Entry, IdRange, LaunchPlan};
use super::sys::{self, Cloned, clone};
use super::{fixed_size, mounts};
use crate::folder::{Folder, Record};

/// A step of the launch that failed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchError {
    /// What was attempted.
    pub(crate) step: String,
    /// The kernel's answer.
    pub(crate) errno: Option<i32>,
    /// The same for people.
    pub(crate) message: String,
}

impl LaunchError {
    fn new(step: impl Into<String>, error: &io::Error) -> Self {
        Self { step: step.into(), errno: error.raw_os_error(), message: error.to_string() }
    }
}

/// Names the step in which a call failed.
trait Step<T> {
    fn step(self, step: impl Into<String>) -> Result<T, LaunchError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: impl Into<String>) -> Result<T, LaunchError> {
        self.map_err(|error| LaunchError::new(step, &error.into()))
    }
}

/// What the launcher tells whoever asked for the sandbox, as one line on its stderr.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LaunchStatus {
    /// The worker runs.
    Ready,
    /// It does not.
    Error(LaunchError),
}

/// The exit status of a launcher that could not start the worker.
pub(crate) const NOT_LAUNCHED: u8 = 120;

/// The role: builds the sandbox whose folder is named, waits for its worker, and ends as the worker did
/// (128 and the signal's number if a signal ended it).
#[must_use]
pub fn launcher_main(folder: &Path, parent: i32) -> ExitCode {
    ExitCode::from(launch_and_wait(folder, parent))
}

/// What the launcher does, in a process of its own that has one thread. Returns how that is to end.
pub(crate) fn launch_and_wait(folder: &Path, parent: i32) -> u8 {
    // A fork has its shim's command line; a list of processes tells the two apart by this.
    let _ = rustix::thread::set_name(c"launcher");
    match launch(folder, parent) {
        Ok(pid) => {
            report(&LaunchStatus::Ready);
            wait_for(pid)
        }
        Err(error) => {
            report(&LaunchStatus::Error(error));
            NOT_LAUNCHED
        }
    }
}

fn report(status: &LaunchStatus) {
    let line = serde_json::to_string(status).expect("a status is plain data");
    // Nobody may be listening any more: a detached sandbox outlives the process that asked for it.
    let _ = writeln!(io::stderr(), "{line}");
    // Whoever listens waits for the end of this pipe; the worker must not hold it open.
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stderr(null);
    }
}

fn launch(folder: &Path, parent: i32) -> Result<Pid, LaunchError> {
    die_with_parent(parent).step("tie the launcher to its shim")?;
    let folder = Folder::at(folder).step("open the sandbox's folder")?;
    let plan: LaunchPlan =
        folder.read(Record::Plan).step("read the plan")?.ok_or_else(|| missing("read the plan"))?;
    let errors = File::create(folder.worker_errors()).step("open the worker's stderr")?;
    let opened = open_mounts(&plan, &folder)?;
    let way = cgroup::open_way(plan.cgroup.as_ref()).step("open the cgroup")?;
    let (born_in, mut joins) = match way {
        Way::None => (None, Vec::new()),
        Way::Born(group) => (Some(group), Vec::new()),
        Way::Joins(groups) => (None, groups),
    };

    let (mut go_read, mut go_write) = io::pipe().step("make a pipe")?;
    let (mut failed_read, failed_write) = io::pipe().step("make a pipe")?;
    let group = born_in.as_ref().map(AsFd::as_fd);
    match maker::as_maker(plan.ids, parent, || clone(namespaces(&plan), group)).step(CREATE_NAMESPACES)? {
        Cloned::Child => {
            drop((go_write, failed_read));
            let _ = go_read.read_exact(&mut [0]);
            let failed_write: OwnedFd = failed_write.into();
            child::become_worker(&plan, opened, &mut joins, &errors.into(), &failed_write)
        }
        Cloned::Parent(pid) => {
            drop((go_read, failed_write, opened, joins));
            map_ids(pid, &plan).step("map the sandbox's ids")?;
            let namespaces = namespace_facts(pid).step("read the sandbox's namespaces")?;
            go_write.write_all(&[1]).step("start the sandbox's first process")?;
            drop(go_write);
            wait_until_started(&mut failed_read)?;
            let outside = measure(&plan, &folder, pid, namespaces)?;
            folder.write(Record::Outside, &outside).step("record the seal")?;
            Ok(pid)
        }
    }
}

/// The step whose failure means that this machine forbids sandboxes.
pub(crate) const CREATE_NAMESPACES: &str = "create namespaces";

/// How a step that mounts an overlay begins.
pub(crate) const OVERLAY: &str = "mount an overlay of ";

fn missing(step: &str) -> LaunchError {
    LaunchError::new(step, &io::Error::from(io::ErrorKind::NotFound))
}

/// Dies when the process that started this one dies, and does not start if it is dead already.
pub(crate) fn die_with_parent(parent: i32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::other("the shim is gone"))
    }
}

fn namespaces(plan: &LaunchPlan) -> libc::c_int {
    let all = [
        ("user", libc::CLONE_NEWUSER),
        ("mnt", libc::CLONE_NEWNS),
        ("pid", libc::CLONE_NEWPID),
        ("ipc", libc::CLONE_NEWIPC),
        ("uts", libc::CLONE_NEWUTS),
        ("cgroup", libc::CLONE_NEWCGROUP),
        ("net", if plan.network.is_closed() { libc::CLONE_NEWNET } else { 0 }),
    ];
    all.iter()
        .filter(|(kind, _)| !plan.without.has(&format!("namespaces:{kind}")))
        .fold(0, |flags, (_, flag)| flags | flag)
}

/// Opens what only root can: layers with shifted owners, and paths that the ids inside cannot walk.
fn open_mounts(plan: &LaunchPlan, folder: &Folder) -> Result<Vec<Option<OwnedFd>>, LaunchError> {
    if plan.ids.is_none() {
        return Ok(plan.entries.iter().map(|_| None).collect());
    }
    let has_layers = plan.entries.iter().any(|entry| matches!(entry, Entry::Overlay { .. }));
    let stage = has_layers.then(|| make_stage(folder)).transpose().step("make a mount namespace")?;
    let open = |entry: &Entry| mounts::open(entry, plan.ids, stage.as_deref()).step(child::describe(entry));
    plan.entries.iter().map(open).collect()
}

/// A place in a mount namespace of this process alone, so that nothing of it is seen or left on the host.
fn make_stage(folder: &Folder) -> io::Result<PathBuf> {
    let stage = folder.path().join("stage");
    fs::create_dir(&stage)?;
    sys::leave_mount_namespace()?;
    let private = rustix::mount::MountPropagationFlags::PRIVATE | rustix::mount::MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private)?;
    let memory = mounts::memory(1 << 20, "0700")?;
    mounts::attach(memory.as_fd(), &stage)?;
    Ok(stage)
}

fn map_ids(pid: Pid, plan: &LaunchPlan) -> io::Result<()> {
    match plan.ids {
        Some(ids) => {
            let map = format!("0 {} {}", ids.base, IdRange::COUNT);
            write_maps(pid, &map, &map)
        }
        None => {
            // Without this an ordinary user may not map a group: dropping a group could open a file whose
            // mode shuts that group out.
            fs::write(format!("/proc/{}/setgroups", pid.as_raw_nonzero()), "deny")?;
            let map = |id: u32| format!("{} {id} 1", plan.agent_id());
            let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
            write_maps(pid, &map(uid.as_raw()), &map(gid.as_raw()))
        }
    }
}

fn namespace_facts(pid: Pid) -> io::Result<BTreeMap<String, NamespaceFact>> {
    let number = |process: &str, kind: &str| -> io::Result<u64> {
        let link = fs::read_link(format!("/proc/{process}/ns/{kind}"))?;
        let text = link.to_string_lossy();
        let digits = text.trim_end_matches(']').rsplit('[').next().unwrap_or_default();
        digits.parse().map_err(|_| io::Error::other(format!("unexpected namespace {text}")))
    };
    let pid = pid.as_raw_nonzero().to_string();
    let kinds = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    let fact = |kind| {
        Ok((String::from(kind), NamespaceFact { sandbox: number(&pid, kind)?, host: number("self", kind)? }))
    };
    kinds.into_iter().map(fact).collect()
}

/// The child closes its end by becoming the worker, or says first why it could not.
fn wait_until_started(failed: &mut io::PipeReader) -> Result<(), LaunchError> {
    let mut text = String::new();
    failed.read_to_string(&mut text).step("wait for the sandbox's first process")?;
    match serde_json::from_str(&text) {
        Ok(error) => Err(error),
        Err(_) if text.is_empty() => Ok(()),
        Err(_) => Err(LaunchError::new("start the worker", &io::Error::other(text))),
    }
}

fn measure(
    plan: &LaunchPlan,
    folder: &Folder,
    pid: Pid,
    namespaces: BTreeMap<String, NamespaceFact>,
) -> Result<OutsideSeal, LaunchError> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok());
    Ok(OutsideSeal {
        namespaces,
        // A process whose user cannot be read counts as root: unknown is never reported as good.
        host_uid: uid.unwrap_or(0),
        cgroup: cgroup::read_back(plan.cgroup.as_ref()).step("read the limits back")?,
        limits_note: plan.limits_note.clone(),
        workspace_bytes: (!plan.without.has("limits:disk")).then_some(plan.workspace_bytes),
        disk: match plan.fixed_size {
            true => fixed_size::measure(folder, plan.workspace_bytes),
            false => DiskLimit::Sampled,
        },
    })
}

fn wait_for(pid: Pid) -> u8 {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                let code = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => code,
                    (None, Some(signal)) => 128 + signal,
                    (None, None) => continue,
                };
                return u8::try_from(code).unwrap_or(u8::MAX);
            }
            Err(rustix::io::Errno::INTR) | Ok(None) => {}
            Err(_) => return u8::MAX,
        }
    }
}
