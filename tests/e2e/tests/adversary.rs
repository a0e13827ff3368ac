//! Holes that were found by looking for them, each with what must happen instead.

use std::cell::Cell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use cofferdam_e2e::attack_suite::{events, hostile_program, messages};
use cofferdam_e2e::processes::{descendants_of, wait_until, with_role};
use cofferdam_e2e::{Fixture, Running};
use cofferdam_test_marks::limits;
use rustix::process::Signal;

fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIPPED: only root can set up: {what}");
    }
    root
}

/// A service account lives in `/opt`, which every sandbox shows.
#[limits]
#[test]
fn a_home_a_state_folder_and_a_repository_below_a_shown_folder_are_covered() {
    if !is_root("a home below /opt") {
        return;
    }
    let fixture = Fixture::below(Path::new("/opt"));
    fs::set_permissions(fixture.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(fixture.home().join(".ssh")).unwrap();
    fs::write(fixture.home().join(".ssh/id_ed25519"), "private").unwrap();
    fs::create_dir_all(fixture.home().join(".cargo/bin")).unwrap();
    fs::write(fixture.home().join(".cargo/bin/tool"), "a tool").unwrap();
    fixture.write(".env", "PASSWORD=hunter2");
    let [home, state, repository] =
        [fixture.home(), fixture.state(), fixture.repository()].map(|path| path.display().to_string());
    let script = format!(
        "cat {home}/.ssh/id_ed25519 {repository}/.env {repository}/README.md; ls -A {home} {state}; \
         cat {home}/.cargo/bin/tool; echo; touch {home}/x {repository}/x {state}/x; cat /workspace/README.md"
    );
    let finished = fixture.run(&[], &script);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let events = events(&fixture, &finished.run_id());
    let said: Vec<&str> = messages(&events).collect();
    let expected = [&*format!("{home}:"), ".cargo", "", &*format!("{state}:"), "a tool", "hello"];
    assert_eq!(said, expected);
}

/// The repository's surroundings were mounted, and with them the repository past its mask.
#[limits]
#[test]
fn a_mount_around_the_repository_does_not_show_what_is_masked() {
    let fixture = Fixture::new();
    fixture.write("../around/repo/.env", "PASSWORD=hunter2");
    fs::rename(fixture.repository(), fixture.path("around/repo-moved")).unwrap();
    let repository = fixture.path("around/repo-moved");
    fs::write(repository.join(".env"), "PASSWORD=hunter2").unwrap();
    fs::write(fixture.path("around/other"), "shown\n").unwrap();
    let around = fixture.path("around").display().to_string();
    let repo = repository.display().to_string();
    let finished = fixture.run(
        &["--repo", &repo, "--mount", &format!("{around}:rw")],
        &format!("cat {around}/other {repo}/.env {repo}/README.md; echo x > {repo}/README.md; cat README.md"),
    );
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let events = events(&fixture, &finished.run_id());
    assert_eq!(messages(&events).collect::<Vec<_>>(), ["shown", "hello"]);
    assert_eq!(fs::read_to_string(repository.join("README.md")).unwrap(), "hello\n");
}

/// A file that was removed while it is open takes as much of the disk as any other.
#[limits]
#[test]
fn files_without_a_name_count_as_written() {
    let fixture = Fixture::new();
    let script =
        "for n in 3 4 5 6 7 8; do eval \"exec $n>f\"; rm f; head -c 30000000 /dev/zero >&$n; done; sleep 60";
    for folder in ["/workspace", "/tmp"] {
        let finished =
            fixture.run(&["--disk", "64MiB", "--timeout", "20s"], &format!("cd {folder}; {script}"));
        assert_eq!(finished.outcome(), "failed/disk_limit", "{folder}: {}", finished.stderr);
    }
}

/// An empty file takes no block, and a host has only so many inodes.
#[limits]
#[test]
fn empty_files_count_as_written() {
    let fixture = Fixture::new();
    let script = "mkdir d; cd d; i=0; while [ $i -lt 200 ]; do i=$((i+1)); \
                  echo $(seq $((i*1000)) $((i*1000+999))) | xargs touch; done; sleep 60";
    let finished = fixture.run(&["--disk", "64MiB", "--timeout", "60s"], script);
    assert_eq!(finished.outcome(), "failed/disk_limit", "{}", finished.stderr);
}

/// Each newline would cost the host a row of its database.
#[limits]
#[test]
fn many_empty_lines_reach_the_limit_on_output() {
    let fixture = Fixture::new();
    let finished = fixture.run(&["--timeout", "60s"], "yes '' | head -c 5000000");
    assert_eq!(finished.outcome(), "failed/output_limit", "{}", finished.stderr);
}

/// Git would hold it in memory; the collector died, and with it the whole diff.
#[limits]
#[test]
fn a_huge_sparse_file_does_not_cost_the_diff() {
    let fixture = Fixture::new();
    let finished = fixture.run(&["--memory", "64MiB"], "truncate -s 8G huge; echo more >> README.md");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
    let warnings = finished.json()["warnings"].to_string();
    assert!(warnings.contains("not in the diff: huge"), "{warnings}");
}

/// What no patch can carry is named, but not a hundred thousand times.
#[limits]
#[test]
fn many_strange_files_with_strange_names_neither_break_the_diff_nor_flood_its_reader() {
    let fixture = Fixture::new();
    let script = "mkdir p; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); mkfifo \"p/$i$(printf '\\033[2J')\"; done; \
                  python3 - <<'END' || true\nimport os\nos.mkdir('deep')\nfor _ in range(200):\n  os.chdir('deep' if _ == 0 else 'd')\n  os.mkdir('d')\nEND\n\
                  echo more >> README.md";
    let finished = fixture.run(&[], script);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
    let warnings = finished.json()["warnings"].as_array().unwrap().len();
    assert!(warnings < 30, "{warnings} warnings");
    assert!(!finished.stderr.contains('\u{1b}'), "{}", finished.stderr);
}

/// In a workspace that is a copy, the overlay's marks are the agent's to make.
#[limits]
#[test]
fn a_forged_whiteout_hides_nothing_from_the_diff() {
    let fixture = Fixture::without_repository();
    let script = "echo > seen; : > marked; python3 -c \"import os; os.setxattr('marked', 'user.overlay.whiteout', b'y')\"; \
                  mknod node c 0 0 || true";
    let finished = fixture.run(&["--no-repo"], script);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("b/marked"), "{}", finished.diff());
    assert!(finished.json()["warnings"].to_string().contains("node"), "{}", finished.json()["warnings"]);
}

/// Memory that no process has for itself is memory all the same, also where no cgroup counts it.
#[limits]
#[test]
fn memory_that_is_shared_or_in_a_file_counts_as_used() {
    let fixture = Fixture::new();
    let file = "f = os.memfd_create('x')\nfor _ in range(600): os.write(f, b'x' * (1 << 20))";
    let shared = "m = mmap.mmap(-1, 600 << 20)\nfor i in range(600): m.write(b'x' * (1 << 20))";
    for way in [file, shared] {
        let script = format!("python3 -c \"import os, mmap, time\n{way}\ntime.sleep(60)\"");
        let finished = fixture.run(&["--memory", "256MiB", "--timeout", "20s"], &script);
        assert_eq!(finished.outcome(), "failed/out_of_memory", "{way}: {}", finished.stderr);
    }
}

/// Files in flight between sockets are in no table and in no folder: nobody who looks can see them.
#[limits]
#[test]
fn what_nobody_sees_is_held_where_the_file_system_is_of_a_fixed_size() {
    if !is_root("a file system for one run") {
        return;
    }
    let fixture = Fixture::new();
    let script = "python3 - <<'END'
import os, socket, time
ours, theirs = socket.socketpair()
written = 0
try:
  for _ in range(6):
    file = os.open('/tmp/f', os.O_CREAT | os.O_RDWR)
    os.unlink('/tmp/f')
    for _ in range(30):
      written += os.write(file, b'x' * (1 << 20))
    socket.send_fds(ours, [b'x'], [file])
    os.close(file)
except OSError as error:
  print(error.strerror)
print(written >> 20)
time.sleep(2)
END";
    let run = || fixture.run(&["--disk", "64MiB", "--timeout", "60s"], script);
    let watched = run();
    assert_eq!(watched.json()["seal"]["outside"]["disk"], "sampled");
    assert_eq!(
        (watched.outcome(), fixture.printed(&watched.run_id())),
        ("succeeded".to_owned(), vec!["180".to_owned()])
    );

    fs::write(fixture.state().join("settings.json"), r#"{"sandbox": {"native": {"storage": "memory"}}}"#)
        .unwrap();
    let held = run();
    assert_eq!(held.json()["seal"]["outside"]["disk"], "fixed_size", "{}", held.stderr);
    let said = fixture.printed(&held.run_id());
    assert_eq!(said[0], "No space left on device", "{said:?}");
    assert!(said[1].parse::<u64>().unwrap() <= 65, "{said:?}");

    let finished = fixture.run(&[], "rm README.md; mkdir README.md; echo x > README.md/y");
    assert!(finished.diff().contains("b/README.md/y"), "{}", finished.stderr);
}

/// Whoever looks at what an agent holds cannot be made to use the machine up.
#[limits]
#[test]
fn the_shim_of_a_held_sandbox_has_a_control_group_of_its_own() {
    let fixture = Fixture::new();
    let running = fixture.start(&["--timeout", "60s"], "sleep 50");
    let groups = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let shim = || with_role(&fixture.state(), "shim").first().copied();
    let below = || shim().map(descendants_of).unwrap_or_default();
    let is_agent =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    wait_until(Duration::from_secs(30), "the agent runs", || below().iter().any(is_agent));
    let agent = below().into_iter().find(is_agent).expect("it was seen a moment ago");
    if !groups(agent).contains("cofferdam-sbx_") || groups(agent).contains(".scope/") {
        println!("skipped: there are no control groups of ours here");
    } else {
        let shim = shim().expect("the shim lives with its agent");
        wait_until(Duration::from_secs(10), "the shim is in its group", || groups(shim).contains("-shim"));
        // `4:memory:/GROUP`, or `0::/GROUP` where there is one hierarchy.
        let of_memory =
            |line: &&str| (line.contains(":memory:") || line.starts_with("0::")) && line.ends_with("-shim");
        let text = groups(shim);
        let path = text.lines().find(of_memory).and_then(|line| line.rsplit(':').next()).expect("a group");
        let limits = ["memory{}/memory.limit_in_bytes", "{}/memory.max", "unified{}/memory.max"];
        let read = |file: &str| {
            let file = file.replace("{}", path);
            fs::read_to_string(format!("/sys/fs/cgroup/{}", file.trim_start_matches('/')))
        };
        let found: Vec<String> = limits.iter().filter_map(|file| read(file).ok()).collect();
        assert_eq!(found, ["536870912\n"], "{path}");
        assert!(!groups(agent).contains("-shim"), "{}", groups(agent));
    }
    running.signal(Signal::INT);
    assert_eq!(running.finish().outcome(), "cancelled");
}

/// What nobody can look at might be any amount.
#[limits]
#[test]
fn processes_that_take_too_long_to_look_at_count_as_over_the_limit() {
    let fixture = Fixture::new();
    let (tools, program) = hostile_program(&fixture);
    let mut command = fixture.command();
    command.args(["run", "--json", "--timeout", "120s", "--mount", &tools, "--", &program]);
    command.args(["mappings", "4", "60000", "/tmp"]);
    let running = Running::of(command);
    let (most, seen) = (Cell::new(0), Cell::new(false));
    wait_until(Duration::from_secs(90), "the shim has ended", || {
        let shims = with_role(&fixture.state(), "shim");
        most.set(shims.iter().map(|pid| peak_mib(*pid)).chain([most.get()]).max().unwrap_or(0));
        let was_there = seen.replace(seen.get() || !shims.is_empty());
        was_there && shims.is_empty()
    });
    let finished = running.finish();
    let outcome = finished.json()["outcome"]["message"].to_string();
    assert!(outcome.contains("could not be measured"), "{outcome}: {}", finished.stderr);
    assert!(most.get() < 100, "the shim had {} MiB", most.get());
}

/// The most memory that a process has had, in MiB.
fn peak_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib >> 10)
}

/// The agent closes its own workspace, and with it, once, the collector's view of it.
#[limits]
#[test]
fn a_workspace_that_is_closed_to_its_owner_still_gives_a_diff() {
    let fixture = Fixture::new();
    let finished = fixture.run(&[], "echo more >> README.md; chmod 000 . /home/worker");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("+more"), "{}", finished.stderr);
}

/// Stopped processes answer no polite signal.
#[limits]
#[test]
fn an_agent_that_stops_itself_and_its_children_is_ended_at_its_deadline() {
    let fixture = Fixture::new();
    let finished = fixture.run(&["--timeout", "2s"], "setsid sh -c 'kill -STOP $$' & kill -STOP $$");
    assert_eq!(finished.outcome(), "timed_out", "{}", finished.stderr);
}

/// A file system that is mounted below a folder that the caller shows read-only.
#[limits]
#[test]
fn what_is_mounted_below_a_read_only_mount_is_read_only_too() {
    if !is_root("a file system below a folder") {
        return;
    }
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("data/below")).unwrap();
    let (data, command) = (fixture.path("data").display().to_string(), fixture.command());
    // In a mount namespace of the test's own.
    let script = "mount -t tmpfs none \"$1/below\" && exec \"$2\" run --json --mount \"$1\" -- true";
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", script, "sh", &data]).arg(command.get_program());
    unshare.current_dir(fixture.repository());
    unshare.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let finished = cofferdam_e2e::Finished::of(unshare);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let json = finished.json();
    let mounts = json["seal"]["inside"]["mounts"].as_array().unwrap();
    let below = mounts.iter().find(|mount| mount["target"] == format!("{data}/below")).unwrap();
    assert_eq!(below["read_only"], true, "{below}");
}
