//! The control: a container that was started as carelessly as many are. Privileged, with the engine's socket, with the
//! host's processes, network and files, and with a key on its command line.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cofferdam_attacks::{Ending, Report, find};

use super::host::{AttackedHost, Inside, SECRET};
use crate::Fixture;
use crate::containers::{ContainerMode, InContainers};
use crate::processes::wait_until;

/// Makes every attempt in such a container; each must succeed, or "it was stopped" would prove nothing. It needs root,
/// as the control on a bare host does: what is attacked is root's.
///
/// # Panics
/// With every attempt that did not succeed.
pub fn without_walls(mode: &'static ContainerMode) {
    let Some(stage) = InContainers::new(mode) else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: the control of the attack suite needs root");
    }
    let mut host = AttackedHost::new(&stage.fixture, &Inside::CONTAINER, Some(&stage.engine));
    let program = host.program.display().to_string();
    // Stand-ins for the worker: the first process there is the machine's own.
    let mut victims = [(); 2].map(|()| stand_in(&program, &stage.fixture));
    for (folder, place) in [("workspace", &mut host.target.workspace), ("canary", &mut host.target.canary)] {
        *place = stage.fixture.path(folder);
        std::fs::create_dir(&*place).expect("a new folder");
    }
    host.target.worker_pid = victims[0].id().cast_signed();
    host.target.expendable_pid = victims[1].id().cast_signed();

    let target = serde_json::to_string(&host.target).expect("a target is plain data");
    let folder = stage.fixture.path("");
    let folder = format!("--volume={0}:{0}", folder.display());
    let socket = stage.engine.address().trim_start_matches("unix://");
    let socket = format!("--volume={socket}:/var/run/docker.sock");
    let key = format!("--env=KEY={SECRET}");
    let command = (mode.command)(&stage.engine).expect("the stage has found it");
    let output = Command::new(command)
        .args(["run", "--rm", "--user=0", "--pid=host", "--ipc=host", "--uts=host", "--cgroupns=host"])
        .args(["--network=host", "--volume=/dev:/dev", "--volume=/sys:/sys", "--volume=/:/host"])
        .args(["--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined"])
        .args(["--security-opt=systempaths=unconfined", "--device-cgroup-rule=a *:* rwm"])
        .args(capabilities().iter().map(|name| format!("--cap-add={name}")))
        .args([&folder, &socket, &key, stage.engine.small_image()])
        .args([&program, "run", "--target", &target])
        .output()
        .expect("the engine's command");
    for victim in &mut victims {
        let _ = victim.kill();
        let _ = victim.wait();
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let reports: Vec<Report> =
        text.lines().map(|line| serde_json::from_str(line).expect("a report")).collect();
    assert_eq!(reports.len(), cofferdam_attacks::ATTEMPTS.iter().map(|theme| theme.len()).sum::<usize>());
    let stopped: Vec<&Report> = reports.iter().filter(|report| !has_succeeded(report)).collect();
    assert!(stopped.is_empty(), "did not succeed without walls: {stopped:#?}");
}

/// Its output is a file: what is written to it must be taken by somebody.
fn stand_in(program: &str, fixture: &Fixture) -> Child {
    let output = fixture.path("stand-in");
    let file = File::create(&output).expect("a new file");
    let child = Command::new(program).args(["victim", "stand-in"]).stdin(Stdio::null()).stdout(file).spawn();
    let ready = || std::fs::read(&output).is_ok_and(|said| !said.is_empty());
    wait_until(Duration::from_secs(10), "the stand-in is there", ready);
    child.expect("the stand-in can be started")
}

/// All that root has on this machine. `--privileged` asks for more than a machine may have to give.
fn capabilities() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let set = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).expect("a bounding set");
    let set = u64::from_str_radix(set.trim(), 16).expect("a number");
    let held = CAPABILITIES.iter().enumerate().filter(|(number, _)| set >> number & 1 == 1);
    held.map(|(_, name)| *name).collect()
}

/// By their numbers. Engines of any age know them.
const CAPABILITIES: [&str; 38] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
];

fn has_succeeded(report: &Report) -> bool {
    let absent = find(&report.name).is_some_and(|attempt| attempt.may_be_absent.is_some());
    match report.result {
        Ending::Succeeded => true,
        Ending::NotPossible => absent,
        Ending::Stopped | Ending::Killed | Ending::TimedOut => false,
    }
}
