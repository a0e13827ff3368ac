//! A node is killed at moments that no failpoint names: while a sandbox is half made, while a shim starts.

use std::process::Command;
use std::time::Duration;

use cofferdam_e2e::processes::{wait_until, with_role};
use cofferdam_e2e::{DetachedNode, Fixture, Marks, Queue, Record, cgroups_of, node_id};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_node_killed_at_any_moment_of_the_start_loses_nothing() {
    for after_ms in (0..160).step_by(8) {
        let fixture = Fixture::new();
        let marks = Marks::new(&fixture);
        let queue = Queue::open(&fixture);
        let run = queue.enqueue(&fixture, &marks, "echo more >> README.md; echo one", |_| {});
        let node = DetachedNode::start(&fixture, &node_id(1), None);
        std::thread::sleep(Duration::from_millis(after_ms));
        node.kill();
        let node = DetachedNode::start(&fixture, &node_id(1), None);
        let _ = queue.wait_for_end(&run);
        let state = fixture.state();
        let count = |name: &str| std::fs::read_dir(state.join(name)).map_or(0, Iterator::count);
        wait_until(SOON, "the sandbox is removed", || {
            count("sandboxes/native") + count("workspaces") + count("ids") == 0
        });
        wait_until(SOON, "no shim goes on", || with_role(&state, "shim").is_empty());
        node.stop();
        let record = Record::of(&fixture, run.as_str());
        record.assert_ended_once();
        assert!(marks.starts() <= 1 && cgroups_of(&record.run).is_empty(), "after {after_ms} ms");
        assert_eq!(
            record.outcome(),
            "succeeded",
            "killed after {after_ms} ms: {:#}",
            record.shown["outcome"]
        );
        assert_eq!((record.messages(), marks.ends()), (vec!["one"], 1));
        assert!(record.diff.contains("+more"), "{}", record.diff);
    }
}

/// A shim whose node was killed may start so late that another node has made the sandbox anew, in a folder at the same path.
#[test]
fn a_shim_that_was_started_for_an_earlier_folder_does_not_start_in_the_new_one() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let running = fixture.start(&["--mount", &marks.mount()], &marks.script("read -r line < /dev/zero"));
    wait_until(SOON, "the agent works", || marks.starts() == 1);
    let shim = with_role(&fixture.state(), "shim")[0];
    let command = std::fs::read(format!("/proc/{shim}/cmdline")).expect("the shim lives");
    let words: Vec<&str> =
        command.split(|b| *b == 0).map(|w| std::str::from_utf8(w).expect("text")).collect();
    let [binary, "shim", folder, ticket, ..] = words[..] else { panic!("{words:?}") };
    let recorded = || std::fs::read(format!("{folder}/process.json")).expect("the shim has recorded itself");
    let before = recorded();
    for late in ["", "0", &ticket.replace(|c: char| c.is_ascii_digit(), "f")] {
        let tried = Command::new(binary).args(["shim", folder, late]).output().expect("it can be started");
        assert_eq!(tried.status.code(), Some(120), "{late}: {tried:?}");
        assert!(String::from_utf8_lossy(&tried.stderr).contains("another sandbox's by now"), "{tried:?}");
    }
    assert_eq!((recorded(), marks.starts()), (before, 1));
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.finish().outcome(), "cancelled");
}
