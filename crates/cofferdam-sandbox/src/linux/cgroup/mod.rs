//! Limits that the kernel holds: control groups, version 2 or 1.
//!
//! Version 2 needs a folder that was delegated to us, or a scope that the user's systemd makes; version 1
//! needs a folder in each controller's hierarchy. Where there is neither, [`locate`] says why, and the
//! policy decides whether the run goes on without.

mod v1;
mod v2;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::CgroupFact;

use super::plan::{CgroupLimits, CgroupPlan};

pub(in crate::linux) use v2::systemd_scope;

/// How often the kernel had to hold a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) oom_kills: u64,
    pub(crate) pids_refused: u64,
}

/// Where limits can be kept under this name, or why nowhere.
pub(in crate::linux) fn locate(name: &str) -> Result<CgroupPlan, String> {
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    v2::locate(&own, &mounts, name).or_else(|why_not_v2| {
        v1::locate(&own, &mounts, name).map_err(|why_not_v1| format!("{why_not_v2}; {why_not_v1}"))
    })
}

/// The controllers of the version 2 group that this process is in; `None` where there is no such group.
pub(crate) fn own_controllers() -> Option<String> {
    let text = fs::read_to_string(v2::own_folder().ok()?.join("cgroup.controllers")).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(", "))
}

/// Makes the group and writes its limits.
pub(crate) fn create(plan: &CgroupPlan, limits: &CgroupLimits) -> io::Result<()> {
    let made = match plan {
        CgroupPlan::V1 { memory, cpu, pids } => v1::create(memory, cpu, pids, limits),
        CgroupPlan::V2 { path } => v2::create(path, limits),
        // The limits came with the scope.
        CgroupPlan::SystemdScope => Ok(()),
    };
    if made.is_err() {
        let _ = remove(plan);
    }
    made
}

/// What whoever watches over a sandbox may use. A look at what an agent holds costs some megabytes.
const OF_A_WATCHER: CgroupLimits = CgroupLimits { memory_bytes: 512 << 20, cpus_milli: 1000, pids: 64 };

/// The group of whoever watches over the processes of a group: beside it, so that neither takes from the other. `None` where that
/// is in the group itself.
pub(crate) fn of_watcher(plan: &CgroupPlan) -> Option<CgroupPlan> {
    let beside = |path: &Path| -> Option<PathBuf> {
        let mut name = path.file_name()?.to_owned();
        name.push("-shim");
        Some(path.with_file_name(name))
    };
    match plan {
        CgroupPlan::V1 { memory, cpu, pids } => {
            Some(CgroupPlan::V1 { memory: beside(memory)?, cpu: beside(cpu)?, pids: beside(pids)? })
        }
        CgroupPlan::V2 { path } => Some(CgroupPlan::V2 { path: beside(path)? }),
        CgroupPlan::SystemdScope => None,
    }
}

/// Moves this process into the group of whoever watches over a group. In version 1 that is its first thread, which is whom memory
/// is charged to, and every thread that this one starts from now on.
pub(crate) fn join_as_watcher(plan: &CgroupPlan) -> io::Result<()> {
    let Some(own) = of_watcher(plan) else { return Ok(()) };
    create(&own, &OF_A_WATCHER)?;
    let file = match own {
        CgroupPlan::V1 { .. } => "tasks",
        CgroupPlan::V2 { .. } | CgroupPlan::SystemdScope => "cgroup.procs",
    };
    folders(Some(&own)).into_iter().try_for_each(|folder| fs::write(folder.join(file), "0"))
}

/// How a process that is yet to be made gets into the group. Moving a whole process waits until every
/// processor of the machine has noticed, several milliseconds for each hierarchy; neither of these does.
pub(in crate::linux) enum Way {
    /// There is no group of ours.
    None,
    /// The process is born in the group of this folder.
    Born(OwnedFd),
    /// The process, while it has one thread, writes `0` to each of these. They are opened before it exists,
    /// since it is the opener's rights that count.
    Joins(Vec<File>),
}

/// Opens the group of a process that is yet to be made.
pub(in crate::linux) fn open_way(plan: Option<&CgroupPlan>) -> io::Result<Way> {
    let open = |path: &Path| OpenOptions::new().write(true).open(path.join("tasks"));
    match plan {
        None | Some(CgroupPlan::SystemdScope) => Ok(Way::None),
        Some(CgroupPlan::V1 { memory, cpu, pids }) => {
            [memory, cpu, pids].into_iter().map(|path| open(path)).collect::<io::Result<_>>().map(Way::Joins)
        }
        Some(CgroupPlan::V2 { path }) => Ok(Way::Born(File::open(path)?.into())),
    }
}

/// The limits as the kernel has them.
pub(in crate::linux) fn read_back(plan: Option<&CgroupPlan>) -> io::Result<Option<CgroupFact>> {
    match plan {
        None => Ok(None),
        Some(CgroupPlan::V1 { memory, cpu, pids }) => v1::read_back(memory, cpu, pids).map(Some),
        Some(CgroupPlan::V2 { path }) => v2::read_back(path).map(Some),
        Some(CgroupPlan::SystemdScope) => v2::read_back(&v2::own_folder()?).map(Some),
    }
}

/// How often a limit was hit so far.
pub(crate) fn hits(plan: &CgroupPlan) -> Hits {
    match plan {
        CgroupPlan::V1 { memory, pids, .. } => v1::hits(memory, pids),
        CgroupPlan::V2 { path } => v2::hits(path),
        CgroupPlan::SystemdScope => v2::own_folder().map(|path| v2::hits(&path)).unwrap_or_default(),
    }
}

/// The groups that a process of somebody else's making is in: a container's first. `None` if it cannot be told.
pub(crate) fn of_process(pid: i32) -> Option<CgroupPlan> {
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let v1 = |controller: &str| group_of(&own, &mounts, controller);
    if let (Some(memory), Some(cpu), Some(pids)) = (v1("memory"), v1("cpu"), v1("pids")) {
        return Some(CgroupPlan::V1 { memory, cpu, pids });
    }
    let mount = mount_point(&mounts, "cgroup2", None)?;
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(CgroupPlan::V2 { path: group_folder(&mount, group) })
}

/// The file that says whether a process of somebody else's making is frozen with its group: a paused container.
#[derive(Debug, Clone)]
pub(crate) struct Freezer {
    file: PathBuf,
    frozen: &'static str,
}

impl Freezer {
    /// `None` if it cannot be told.
    pub(crate) fn of_process(pid: i32) -> Option<Self> {
        let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let (folder, file, frozen) = match group_of(&own, &mounts, "freezer") {
            Some(folder) => (folder, "freezer.state", "FROZEN"),
            None => {
                let mount = mount_point(&mounts, "cgroup2", None)?;
                let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
                (group_folder(&mount, group), "cgroup.events", "frozen 1")
            }
        };
        Some(Self { file: folder.join(file), frozen })
    }

    pub(crate) fn is_frozen(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|text| text.lines().any(|line| line == self.frozen))
    }
}

/// The version 1 group of a controller, from the texts of `/proc/PID/cgroup` and `mountinfo`.
fn group_of(own: &str, mounts: &str, controller: &str) -> Option<PathBuf> {
    let mount = mount_point(mounts, "cgroup", Some(controller))?;
    let group = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    Some(group_folder(&mount, group))
}

/// Removes the group, whose processes are dead or dying. Removing it twice is fine.
pub(crate) fn remove(plan: &CgroupPlan) -> io::Result<()> {
    folders(Some(plan)).into_iter().map(remove_folder).fold(Ok(()), Result::and)
}

/// Kills what is left in a group and removes it.
pub(crate) fn end(plan: &CgroupPlan) -> io::Result<()> {
    for _ in 0..100 {
        let members = members(plan);
        if members.is_empty() {
            break;
        }
        for pid in members.into_iter().filter_map(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    remove(plan)
}

/// Every process of the group. For a scope of systemd's there is none to name, since the shim is in it.
fn members(plan: &CgroupPlan) -> Vec<i32> {
    let Some(folder) = folders(Some(plan)).into_iter().next() else { return Vec::new() };
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn folders(plan: Option<&CgroupPlan>) -> Vec<&Path> {
    match plan {
        None | Some(CgroupPlan::SystemdScope) => Vec::new(),
        Some(CgroupPlan::V1 { memory, cpu, pids }) => vec![memory, cpu, pids],
        Some(CgroupPlan::V2 { path }) => vec![path],
    }
}

/// A group whose last process has just died stays busy for a moment.
fn remove_folder(folder: &Path) -> io::Result<()> {
    const TRIES: u32 = 200;
    for attempt in 0..=TRIES {
        match fs::remove_dir(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && attempt < TRIES => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last try returns")
}

/// The mount point of the hierarchy of this type with this option, from the text of `mountinfo`, with the
/// part of the hierarchy that is mounted there.
fn mount_point(mounts: &str, fs_type: &str, option: Option<&str>) -> Option<(PathBuf, String)> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, target) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, _source, options) = (right.next()?, right.next()?, right.next()?);
        let matches = kind == fs_type && option.is_none_or(|name| options.split(',').any(|o| o == name));
        matches.then(|| (PathBuf::from(target), root.to_owned()))
    })
}

/// The folder of a group below its hierarchy's mount point.
fn group_folder(mount: &(PathBuf, String), group: &str) -> PathBuf {
    let below = group.strip_prefix(&mount.1).unwrap_or(group);
    mount.0.join(below.trim_start_matches('/'))
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

fn read_number(path: &Path) -> io::Result<Option<u64>> {
    Ok(fs::read_to_string(path)?.trim().parse().ok())
}

fn counter(path: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
}
