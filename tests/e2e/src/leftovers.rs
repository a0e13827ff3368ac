//! What runs have left behind and should not have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that the runs of a state folder have left besides their records: processes, mounts, cgroups,
/// folders, locks. Empty is as it should be.
#[must_use]
pub fn leftovers(state: &Path) -> Vec<String> {
    let Ok(state) = state.canonicalize() else { return Vec::new() };
    let mut found = Vec::new();
    found.extend(processes(&state));
    found.extend(mounts(&state));
    found.extend(cgroups(&state));
    found.extend(folders(&state));
    found.extend(containers(&state));
    found
}

/// Shims, watchers, launchers and brokers name their folder; the worker and the agent are told by where their files are.
fn processes(state: &Path) -> Vec<String> {
    let state = state.display().to_string();
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && *name != own)
        else {
            continue;
        };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let mounts = String::from_utf8_lossy(&read("mountinfo")).into_owned();
        let is_role = ["shim", "watcher", "launcher", "broker"]
            .iter()
            .any(|role| command.contains(&format!("{role} {state}")));
        if is_role || mounts.contains(&format!("{state}/sandboxes")) {
            found.push(format!("process {pid}: {command}"));
        }
    }
    found
}

fn mounts(state: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let state = state.display().to_string();
    table.lines().filter(|line| line.contains(&state)).map(|line| format!("mount {line}")).collect()
}

/// Groups are named after their sandbox, which is named after its run, whose record is in this state folder.
fn cgroups(state: &Path) -> Vec<String> {
    fs::read_dir(state.join("runs"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().map(str::to_owned))
        .flat_map(|run| cgroups_of(&run))
        .collect()
}

/// The control groups of one run. A run that left no file is not in the state folder, so its test asks.
#[must_use]
pub fn cgroups_of(run: &str) -> Vec<String> {
    let Some(run) = run.strip_prefix("run_") else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("cofferdam-sbx_") && name.contains(run) {
                    found.push(format!("cgroup {}", entry.path().display()));
                }
                open.push(entry.path());
            }
        }
    }
    found
}

fn folders(state: &Path) -> Vec<String> {
    [
        "sandboxes/native",
        "sandboxes/host",
        "sandboxes/docker",
        "sandboxes/apple",
        "trials",
        "workspaces",
        "ids",
        "nodes",
    ]
    .iter()
    .flat_map(|name| fs::read_dir(state.join(name)).into_iter().flatten().flatten())
    .map(|entry| format!("folder {}", entry.path().display()))
    .collect()
}

/// Containers and volumes carry the number of the state folder that they belong to. Where it has none, none was made.
fn containers(state: &Path) -> Vec<String> {
    let Ok(id) = fs::read_to_string(state.join("id")) else { return Vec::new() };
    let runtimes = ["COFFERDAM_TEST_DOCKER_COMMAND", "COFFERDAM_TEST_PODMAN"];
    let label = format!("label=dev.cofferdam.state={id}");
    let listed = |runtime: &PathBuf, arguments: &[&str]| -> Vec<String> {
        let output = Command::new(runtime).args(arguments).args(["--filter", &label]).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().lines().map(|line| format!("{}: {line}", arguments[0])).collect()
    };
    let named = runtimes.iter().filter_map(std::env::var_os).map(PathBuf::from);
    named
        .flat_map(|runtime| {
            let mut found = listed(&runtime, &["ps", "--all", "--quiet"]);
            found.extend(listed(&runtime, &["volume", "ls", "--quiet"]));
            found
        })
        .collect()
}
