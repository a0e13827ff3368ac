//! One `kill -9` of each process that a run consists of: the run ends in one true outcome, at once, and
//! nothing of it goes on.

use std::time::{Duration, Instant};

use cofferdam_e2e::processes::{children_of, descendants_of, is_alive, kill_9, wait_until, with_role};
use cofferdam_e2e::{Fixture, Marks, Record, cgroups_of};

/// How long a run may go on after one of its processes was killed.
const SOON: Duration = Duration::from_secs(3);
const START: Duration = Duration::from_secs(20);

/// The processes of a run whose agent works.
struct Family {
    shim: u32,
    launcher: u32,
    worker: u32,
    /// What the worker has started: the agent and its children.
    agents: Vec<u32>,
}

impl Family {
    fn of(fixture: &Fixture) -> Self {
        let one = |role: &str| {
            let found = with_role(&fixture.state(), role);
            assert_eq!(found.len(), 1, "one {role}: {found:?}");
            found[0]
        };
        let (shim, launcher) = (one("shim"), one("launcher"));
        let worker = children_of(launcher)[0];
        Self { shim, launcher, worker, agents: descendants_of(worker) }
    }

    fn all(&self) -> Vec<u32> {
        [self.shim, self.launcher, self.worker].into_iter().chain(self.agents.iter().copied()).collect()
    }
}

fn killed_in_the_middle(whom: fn(&Family) -> u32) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let script = marks.script("echo more >> README.md; (setsid sleep 61 &) ; sleep 60");
    let running = fixture.start(&["--mount", &marks.mount()], &script);
    wait_until(START, "the agent works", || marks.starts() == 1);
    let family = Family::of(&fixture);
    assert!(!family.agents.is_empty(), "the agent is a child of the worker");
    let killed_at = Instant::now();
    kill_9(whom(&family));
    let finished = running.finish();
    assert!(killed_at.elapsed() < SOON, "it took {:?}", killed_at.elapsed());
    assert_eq!(finished.outcome(), "failed/worker_crashed", "{}", finished.stderr);
    for pid in family.all() {
        assert!(!is_alive(pid), "{pid} of {:?} goes on", family.all());
    }
    let record = Record::of_the_only_run(&fixture);
    record.assert_ended_once();
    assert_eq!((record.outcome().as_str(), marks.ends()), ("failed/worker_crashed", 0));
    assert!(cgroups_of(&record.run).is_empty(), "{:?}", cgroups_of(&record.run));
}

#[test]
fn a_killed_shim_ends_the_run_as_a_crash() {
    killed_in_the_middle(|family| family.shim);
}

#[test]
fn a_killed_launcher_ends_the_run_as_a_crash() {
    killed_in_the_middle(|family| family.launcher);
}

#[test]
fn a_killed_worker_ends_the_run_as_a_crash() {
    killed_in_the_middle(|family| family.worker);
}

#[test]
fn a_killed_worker_on_the_host_ends_the_run_and_its_whole_tree() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let script = marks.script("(setsid sleep 61 &) ; sleep 60");
    let running = fixture.start(&["--mode", "host"], &script);
    wait_until(START, "the agent works", || marks.starts() == 1);
    let shim = with_role(&fixture.state(), "shim")[0];
    let worker = children_of(shim)[0];
    wait_until(START, "its children work", || descendants_of(worker).len() >= 3);
    let family = descendants_of(shim);
    let killed_at = Instant::now();
    kill_9(worker);
    let finished = running.finish();
    assert!(killed_at.elapsed() < SOON, "it took {:?}", killed_at.elapsed());
    assert_eq!(finished.outcome(), "failed/worker_crashed", "{}", finished.stderr);
    assert!(!family.iter().any(|pid| is_alive(*pid)), "something of {family:?} goes on");
}

/// The shim ends what the worker cannot any more, whatever it is called.
#[test]
fn a_process_whose_name_is_not_text_does_not_outlive_a_killed_worker_on_the_host() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let named = marks.folder().join("named");
    // It ends by itself in the end, so that a shim that does not find it is only late.
    let body = format!(
        "(setsid sh -c 'printf \"\\377\\376\\377\" > /proc/$$/comm; echo $$ > {}; sleep 30 & wait' &) ; sleep 60",
        named.display()
    );
    let running = fixture.start(&["--mode", "host"], &marks.script(&body));
    let pid = || std::fs::read_to_string(&named).ok().and_then(|text| text.trim().parse::<u32>().ok());
    wait_until(START, "it has its name", || pid().is_some());
    let pid = pid().expect("it was written");
    assert_eq!(std::fs::read(format!("/proc/{pid}/comm")).expect("it lives"), b"\xff\xfe\xff\n");
    let shim = with_role(&fixture.state(), "shim")[0];
    let killed_at = Instant::now();
    kill_9(children_of(shim)[0]);
    let finished = running.finish();
    assert!(killed_at.elapsed() < SOON, "it took {:?}", killed_at.elapsed());
    assert_eq!(finished.outcome(), "failed/worker_crashed", "{}", finished.stderr);
    assert!(!is_alive(pid), "{pid} goes on");
}

#[test]
fn a_killed_shim_on_the_host_ends_the_run_and_its_whole_tree() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let script = marks.script("(setsid sleep 61 &) ; sleep 60");
    let running = fixture.start(&["--mode", "host"], &script);
    wait_until(START, "the agent works", || marks.starts() == 1);
    let shim = with_role(&fixture.state(), "shim")[0];
    let worker = children_of(shim)[0];
    wait_until(START, "its children work", || descendants_of(worker).len() >= 3);
    let family = descendants_of(shim);
    let killed_at = Instant::now();
    kill_9(shim);
    let finished = running.finish();
    assert!(killed_at.elapsed() < SOON, "it took {:?}", killed_at.elapsed());
    assert_eq!(finished.outcome(), "failed/worker_crashed", "{}", finished.stderr);
    wait_until(SOON, "the whole tree is gone", || !family.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn a_runner_killed_while_it_collects_is_followed_by_one_that_collects() {
    // How long collecting takes follows the number of files. A runner that was done before it could be killed proves
    // nothing, and is given more.
    let was_killed = [3_000, 12_000, 48_000].into_iter().any(killed_while_it_collects);
    assert!(was_killed, "the runner always ended first");
}

/// False if the runner had ended before it could be killed.
fn killed_while_it_collects(files: u32) -> bool {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let body =
        format!("echo more >> README.md; i=0; while [ $i -lt {files} ]; do echo $i > f$i; i=$((i+1)); done");
    let mut running = fixture.start(&["--mount", &marks.mount()], &marks.script(&body));
    running.wait_for("collecting");
    // The collector runs in a sandbox of its own, whose launcher is tied to the runner.
    wait_until(START, "the collector runs", || {
        !with_role(&fixture.state(), "launcher").is_empty() || with_role(&fixture.state(), "shim").is_empty()
    });
    running.signal(rustix::process::Signal::KILL);
    let killed = running.finish();
    let record = Record::of_the_only_run(&fixture);
    record.assert_ended_once();
    assert_eq!((record.outcome().as_str(), marks.starts()), ("succeeded", 1));
    assert!(record.diff.contains("+more") && record.diff.contains(&format!("f{}", files - 1)));
    assert!(cgroups_of(&record.run).is_empty(), "{:?}", cgroups_of(&record.run));
    killed.code.is_none()
}
