//! Every bad habit ends in one true outcome with nothing left, on every backend.

use std::time::Duration;

use cofferdam_attacks::behaviours::FORGED_EVENT;
use cofferdam_e2e::attack_suite::{events, hostile_program, messages};
use cofferdam_e2e::containers::{ContainerMode, InContainers};
use cofferdam_e2e::{Finished, Fixture};

/// Not for ever. How soon each cause becomes an outcome is for tests that run alone; these share a machine.
const SOON: Duration = Duration::from_secs(60);

/// One test for each sealed backend; another one is one more line. An engine holds the limits of its containers itself, so that these
/// have no mark.
macro_rules! on_every_sealed_backend {
    ($(fn $name:ident($stage:ident: Sealed) $body:block)+) => {
        on_every_sealed_backend! {
            @each [cofferdam_test_marks::limits] native, Some(Sealed::native()), $($name $stage $body)+
        }
        on_every_sealed_backend! {
            @each [cfg(test)] docker, Sealed::in_containers(&cofferdam_e2e::containers::DOCKER), $($name $stage $body)+
        }
        on_every_sealed_backend! {
            @each [cfg(test)] apple_podman, Sealed::in_containers(&cofferdam_e2e::containers::APPLE_PODMAN),
            $($name $stage $body)+
        }
    };
    (@each [$mark:meta] $backend:ident, $stage_of:expr, $($name:ident $stage:ident $body:block)+) => {
        mod $backend {
            use super::*;
            $(#[$mark]
            #[test]
            fn $name() {
                let Some($stage) = $stage_of else { return };
                $body
            })+
        }
    };
}

on_every_sealed_backend! {
    fn forged_worker_lines_arrive_as_messages_and_not_as_events(stage: Sealed) {
        let finished = stage.misbehave(&[], &["forge"]);
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
        let events = events(&stage.fixture, &finished.run_id());
        assert_eq!(messages(&events).collect::<Vec<_>>(), [FORGED_EVENT]);
        let finishes = events.iter().filter(|event| event["type"] == "agent.finished").count();
        assert_eq!(finishes, 1, "{events:#?}");
    }

    // The exit status of an agent that printed a success is still its own.
    fn a_forged_success_does_not_hide_a_failure(stage: Sealed) {
        let finished = stage.run(&format!("echo '{FORGED_EVENT}'; exit 3"));
        assert_eq!(finished.outcome(), "failed/agent", "{}", finished.stderr);
        assert_eq!(finished.json()["outcome"]["exit_code"], 3);
    }

    fn a_fork_bomb_is_held_and_leaves_nothing(stage: Sealed) {
        let finished = stage.misbehave(&["--pids", "64"], &["fork", "5000"]);
        // A cgroup counts how often it refused; without one the program alone knows.
        let held_by_a_group = !finished.json()["seal"]["outside"]["cgroup"].is_null();
        let expected = if held_by_a_group { "failed/pids_limit" } else { "failed/agent" };
        assert_eq!(finished.outcome(), expected, "{}", finished.stderr);
        assert!(finished.took < SOON, "{:?}", finished.took);
    }

    fn a_memory_bomb_ends_as_out_of_memory(stage: Sealed) {
        let finished = stage.misbehave(&["--memory", "256MiB"], &["memory", "1073741824"]);
        assert_eq!(finished.outcome(), "failed/out_of_memory", "{}", finished.stderr);
        assert!(finished.took < SOON, "{:?}", finished.took);
    }

    fn filling_the_disk_ends_at_the_limit(stage: Sealed) {
        for folder in ["/workspace", "/home/worker", "/tmp"] {
            let finished = stage.misbehave(&["--disk", "64MiB"], &["disk", "2147483648", folder]);
            assert!(
                ["failed/disk_limit", "failed/agent"].contains(&finished.outcome().as_str()),
                "{folder}: {}",
                finished.stderr
            );
            assert!(finished.took < SOON, "{folder}: {:?}", finished.took);
        }
    }

    // Held in files without a name, which only their holder knows of.
    fn what_a_hidden_process_or_thread_holds_counts_as_written(stage: Sealed) {
        for hiding in ["name", "zombie", "table"] {
            let hidden = ["hide", hiding, "disk", "120", "/workspace", "15"];
            let finished = stage.misbehave(&["--disk", "64MiB", "--timeout", "60s"], &hidden);
            assert_eq!(finished.outcome(), "failed/disk_limit", "{hiding}: {}", finished.stderr);
        }
    }

    // Where a control group counts, nothing hides from it; elsewhere we look ourselves.
    fn what_a_hidden_process_or_thread_holds_counts_as_memory(stage: Sealed) {
        for hiding in ["name", "zombie", "table"] {
            let hidden = ["hide", hiding, "memory", "600", "15"];
            let finished = stage.misbehave(&["--memory", "256MiB", "--timeout", "60s"], &hidden);
            assert_eq!(finished.outcome(), "failed/out_of_memory", "{hiding}: {}", finished.stderr);
        }
    }

    // What the kernel writes about them is gigabytes of text, and whoever reads it all misses the deadline by a minute.
    fn processes_with_endless_mappings_are_ended_at_the_deadline(stage: Sealed) {
        let finished = stage.misbehave(&["--timeout", "5s"], &["mappings", "40", "60000", "/tmp"]);
        assert_eq!(finished.outcome(), "timed_out", "{}", finished.stderr);
        assert!(finished.took < Duration::from_secs(30), "{:?}", finished.took);
    }

    fn exhausting_descriptors_hurts_the_agent_alone(stage: Sealed) {
        let finished = stage.misbehave(&[], &["fds", "100000"]);
        assert_eq!(finished.outcome(), "failed/agent", "{}", finished.stderr);
    }

    fn huge_output_and_an_endless_line_end_at_the_limit(stage: Sealed) {
        for behaviour in ["output", "line"] {
            let finished = stage.misbehave(&[], &[behaviour, "500000000"]);
            assert_eq!(finished.outcome(), "failed/output_limit", "{behaviour}: {}", finished.stderr);
        }
    }

    fn a_process_that_wants_to_outlive_the_agent_does_not(stage: Sealed) {
        let finished = stage.misbehave(&[], &["outlive", "600"]);
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
        assert!(finished.took < SOON, "{:?}", finished.took);
    }
}

/// A fixture whose runs are sealed by one backend.
struct Sealed {
    fixture: Fixture,
    mode: &'static str,
}

impl Sealed {
    fn native() -> Self {
        Self { fixture: Fixture::new(), mode: "native" }
    }

    fn in_containers(mode: &'static ContainerMode) -> Option<Self> {
        Some(Self { fixture: InContainers::new(mode)?.fixture, mode: mode.mode })
    }

    fn run(&self, script: &str) -> Finished {
        self.fixture.run(&["--mode", self.mode], script)
    }

    /// Runs the hostile program with one behaviour.
    fn misbehave(&self, flags: &[&str], behaviour: &[&str]) -> Finished {
        let (tools, program) = hostile_program(&self.fixture);
        let mut args = vec!["run", "--json", "--mode", self.mode, "--mount", &tools];
        args.extend(flags);
        args.extend(["--", &program]);
        args.extend(behaviour);
        self.fixture.cofferdam(&args)
    }
}
