//! The sandbox's first process, from its birth to the moment it becomes the worker.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use cofferdam_core::inside;
use rustix::fs::FileType;
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::process::Signal;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, Gid, Uid, capabilities, set_capabilities,
};

use super::{LaunchError, OVERLAY, Step};
use crate::linux::plan::{Entry, LaunchPlan};
use crate::linux::{mounts, sys};

/// Where the new root is built: in the mount namespace of this process alone, so any folder will do that
/// every machine has.
const STAGE: &str = "/tmp";

/// Builds the sandbox around this process and becomes the worker. Whatever fails is written to `failed`,
/// which closes by itself when the worker starts.
pub(super) fn become_worker(
    plan: &LaunchPlan,
    opened: Vec<Option<OwnedFd>>,
    joins: &mut [File],
    errors: &OwnedFd,
    failed: &OwnedFd,
) -> ! {
    let joined = joins.iter_mut().try_for_each(|group| group.write_all(b"0")).step("join the cgroup");
    let error = match joined.and_then(|()| build(plan, opened, errors, failed)) {
        Ok(()) => start(&plan.arguments),
        Err(error) => error,
    };
    let text = serde_json::to_vec(&error).unwrap_or_default();
    let _ = rustix::io::write(failed, &text);
    std::process::exit(1)
}

fn build(
    plan: &LaunchPlan,
    opened: Vec<Option<OwnedFd>>,
    errors: &OwnedFd,
    failed: &OwnedFd,
) -> Result<(), LaunchError> {
    rustix::stdio::dup2_stderr(errors).step("open the worker's stderr")?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .step("tie the sandbox to its launcher")?;
    rustix::process::setsid().step("leave the caller's terminal")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    take_identity(plan).step("take the agent's identity")?;
    build_root(plan, opened)?;
    if plan.network.is_closed() && !plan.without.has("namespaces:net") {
        sys::bring_up_loopback().step("bring up loopback")?;
    }
    if !plan.without.has("namespaces:uts") {
        rustix::system::sethostname(b"cofferdam").step("set the host name")?;
    }
    if !plan.without.has("capabilities") {
        drop_capabilities().step("drop capabilities")?;
    }
    if !plan.without.has("no_new_privileges") {
        rustix::thread::set_no_new_privs(true).step("set no-new-privileges")?;
    }
    // Taking an identity clears this, so it is said again; the launcher may have died in between.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .step("tie the sandbox to its launcher")?;
    if is_abandoned(failed) {
        std::process::exit(1);
    }
    Ok(())
}

/// Whether nobody reads what this process would report: its launcher is gone.
fn is_abandoned(failed: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(failed, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Becomes the agent's user, keeping for the moment the capabilities that mounting needs. Files that are
/// made from here on belong to that user: the kernel refuses a file whose owner has no number inside.
fn take_identity(plan: &LaunchPlan) -> std::io::Result<()> {
    if plan.ids.is_some() {
        rustix::thread::set_keep_capabilities(true)?;
        rustix::thread::set_thread_groups(&[])?;
        let (gid, uid) = (Gid::from_raw(plan.agent_id()), Uid::from_raw(plan.agent_id()));
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    }
    let permitted = capabilities(None)?.permitted;
    let sets = CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

fn build_root(plan: &LaunchPlan, opened: Vec<Option<OwnedFd>>) -> Result<(), LaunchError> {
    // Nothing that is mounted here may be seen on the host, nor the other way round.
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .step("detach from the host's mounts")?;
    let root = mounts::memory(4 << 20, "0755").step("make the root")?;
    let stage = Path::new(STAGE);
    // Paths below the stage may be hidden by it, so what an ordinary user binds is opened first.
    let opened = open_remaining(plan, opened)?;
    mounts::attach(root.as_fd(), stage).step("attach the root")?;
    for (entry, mount) in plan.entries.iter().zip(opened) {
        place(plan, entry, mount, stage).step(describe(entry))?;
    }
    enter_root(stage).step("enter the root")?;
    if !plan.without.has("mounts") {
        let attributes = sys::MountAttributes { set: libc::MOUNT_ATTR_RDONLY, ..Default::default() };
        let root = File::open("/").step("open the root")?;
        sys::set_mount_attributes(&root, sys::Depth::One, &attributes).step("close the root to writing")?;
        for entry in &plan.entries {
            let Entry::Empty { path } = entry else { continue };
            // One that the agent cannot reach was not covered.
            let Ok(cover) = File::open(path) else { continue };
            sys::set_mount_attributes(&cover, sys::Depth::One, &attributes).step(describe(entry))?;
        }
    }
    Ok(())
}

fn open_remaining(
    plan: &LaunchPlan,
    opened: Vec<Option<OwnedFd>>,
) -> Result<Vec<Option<OwnedFd>>, LaunchError> {
    let open = |(entry, mount): (&Entry, Option<OwnedFd>)| match mount {
        Some(mount) => Ok(Some(mount)),
        None if plan.ids.is_some() => Ok(None),
        None => mounts::open(entry, None, None).step(describe(entry)),
    };
    plan.entries.iter().zip(opened).map(open).collect()
}

/// What a step is called when it fails.
pub(super) fn describe(entry: &Entry) -> String {
    match entry {
        Entry::Folder { path } => format!("make the folder {}", path.display()),
        Entry::Link { path, .. } => format!("make the link {}", path.display()),
        Entry::File { path, .. } => format!("make the file {}", path.display()),
        Entry::Bind { source, .. } => format!("mount {}", source.display()),
        Entry::Overlay { layers, .. } => {
            let lowest = layers.last().map(|path| path.display().to_string()).unwrap_or_default();
            format!("{OVERLAY}{lowest}")
        }
        Entry::Proc { .. } => "mount proc".to_owned(),
        Entry::Devices => "make the devices".to_owned(),
        Entry::Empty { path } => format!("cover {}", path.display()),
        Entry::Memory { path, .. } => format!("mount memory at {}", path.display()),
    }
}

fn place(plan: &LaunchPlan, entry: &Entry, mount: Option<OwnedFd>, stage: &Path) -> std::io::Result<()> {
    let below = |path: &Path| stage.join(path.strip_prefix("/").unwrap_or(path));
    match entry {
        Entry::Folder { path } => make_folder(&below(path)),
        Entry::Link { path, target } => {
            let link = below(path);
            if link.symlink_metadata().is_ok() {
                return Ok(());
            }
            // An alias below a read-only mount cannot be made, and nothing depends on it.
            match make_parent(&link).and_then(|()| symlink(target, &link)) {
                Err(error) if error.raw_os_error() == Some(libc::EROFS) => Ok(()),
                made => made,
            }
        }
        Entry::File { path, content } => {
            let path = below(path);
            make_parent(&path)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
            file.write_all(content.as_bytes())
        }
        Entry::Bind { target, .. } | Entry::Overlay { target, .. } => {
            let mount = mount.expect("binds and overlays were opened");
            attach_at(&mount, &below(target))
        }
        Entry::Proc { path } => {
            // Mounted by the first process of the pid namespace, since a proc shows its mounter's.
            let path = below(path);
            make_folder(&path)?;
            mounts::attach(mounts::processes()?.as_fd(), &path)
        }
        Entry::Devices => make_devices(plan, stage),
        Entry::Empty { path } => {
            let path = below(path);
            // This process may do more than the agent: what it cannot reach, the agent cannot either.
            match fs::metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
                Err(error) => Err(error),
                Ok(_) => mounts::attach(mounts::memory(64 << 10, "0755")?.as_fd(), &path),
            }
        }
        Entry::Memory { path, bytes } => {
            let path = below(path);
            make_folder(&path)?;
            mounts::attach(mounts::memory(*bytes, "1777")?.as_fd(), &path)
        }
    }
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), make_folder)
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    fs::create_dir_all(path)
}

/// A mount needs something of its own kind to cover.
fn attach_at(mount: &OwnedFd, target: &Path) -> std::io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(mount)?.st_mode);
    if kind == FileType::Directory {
        make_folder(target)?;
    } else {
        make_parent(target)?;
        match OpenOptions::new().write(true).create_new(true).open(target) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    mounts::attach(mount.as_fd(), target)
}

/// Pseudo-terminals and the usual links; the device nodes themselves are binds of the plan, because no
/// device can be made in a user namespace.
fn make_devices(plan: &LaunchPlan, stage: &Path) -> std::io::Result<()> {
    let dev = stage.join("dev");
    make_folder(&dev)?;
    let pts = dev.join("pts");
    make_folder(&pts)?;
    mounts::attach(mounts::terminals()?.as_fd(), &pts)?;
    symlink("pts/ptmx", dev.join("ptmx"))?;
    symlink("/proc/self/fd", dev.join("fd"))?;
    for (name, number) in [("stdin", 0), ("stdout", 1), ("stderr", 2)] {
        symlink(format!("/proc/self/fd/{number}"), dev.join(name))?;
    }
    let shm = dev.join("shm");
    make_folder(&shm)?;
    mounts::attach(mounts::memory(plan.limits.memory_bytes / 4, "1777")?.as_fd(), &shm)?;
    fs::set_permissions(&dev, fs::Permissions::from_mode(0o755))
}

/// Leaves the host's file system behind for good.
fn enter_root(stage: &Path) -> std::io::Result<()> {
    std::env::set_current_dir(stage)?;
    rustix::process::pivot_root(".", ".")?;
    // The old root lies on top of the new one now.
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}

/// Gives up every capability in every set, also those that a set-user-id program would bring.
fn drop_capabilities() -> std::io::Result<()> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(bits)?;
    rustix::thread::clear_ambient_capability_set()?;
    let last: u32 = fs::read_to_string("/proc/sys/kernel/cap_last_cap")?.trim().parse().unwrap_or(63);
    for number in 0..=last.min(63) {
        let one = CapabilitySet::from_bits_retain(1 << number);
        rustix::thread::remove_capability_from_bounding_set(one)?;
    }
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

fn start(arguments: &[String]) -> LaunchError {
    let executable = match File::open(inside::BINARY) {
        Ok(executable) => executable,
        Err(error) => return LaunchError::new("open our own binary", &error),
    };
    let text = |text: &str| CString::new(text).expect("arguments of ours hold no NUL");
    let argv: Vec<CString> =
        [inside::BINARY].into_iter().chain(arguments.iter().map(String::as_str)).map(text).collect();
    // The worker inherits nothing of the caller's environment: what the agent gets is in its job.
    let env = [text("PATH=/usr/bin:/bin"), text(&format!("HOME={}", inside::HOME))];
    LaunchError::new("start the worker", &sys::execute(executable.as_fd(), &argv, &env))
}
