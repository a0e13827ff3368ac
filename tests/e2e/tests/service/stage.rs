//! A service with a queue, and runs that wait for the test.

use std::fs;
use std::time::Duration;

use cofferdam_core::RunId;
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Marks, Queue, Record};

/// A machine that is shared takes its time.
pub(crate) const IN_TIME: Duration = Duration::from_secs(60);

/// What a service works on. The fixture looks for what is left when it is dropped, so a test's service is dropped before.
pub(crate) struct Stage {
    pub(crate) queue: Queue,
    pub(crate) marks: Marks,
    pub(crate) fixture: Fixture,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::of(Fixture::new())
    }

    pub(crate) fn of(fixture: Fixture) -> Self {
        let (marks, queue) = (Marks::new(&fixture), Queue::open(&fixture));
        Self { queue, marks, fixture }
    }

    /// A run that says a line, and then waits until the test lets it go on.
    pub(crate) fn enqueue_held(&self) -> RunId {
        let go = self.marks.folder().join("go");
        let body = format!(
            "echo before; while [ ! -e {} ]; do sleep 0.05; done; echo after; echo more >> README.md",
            go.display()
        );
        self.queue.enqueue(&self.fixture, &self.marks, &body, |_| {})
    }

    pub(crate) fn release(&self) {
        fs::write(self.marks.folder().join("go"), "").expect("a folder of the test");
    }

    pub(crate) fn agent_works(&self) {
        wait_until(IN_TIME, "the agent works", || self.marks.starts() == 1);
    }

    /// The log of one of its processes.
    pub(crate) fn log(&self, role: &str) -> String {
        fs::read_to_string(self.fixture.state().join(format!("logs/{role}-main.log"))).unwrap_or_default()
    }

    /// Waits for the end of a held run, and checks that it was one piece of work, done once, and recorded whole.
    pub(crate) fn ends_as_one(&self, run: &RunId) -> Record {
        let _ = self.queue.wait_for_end_within(run, IN_TIME);
        let state = self.fixture.state();
        let is_empty = |name: &str| fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
        wait_until(IN_TIME, "the sandbox is removed", || {
            is_empty("sandboxes/native") && is_empty("workspaces")
        });
        let record = Record::of(&self.fixture, run.as_str());
        record.assert_ended_once();
        assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
        assert_eq!(self.queue.run(run).attempts, 1, "the same attempt to its end");
        assert_eq!((self.marks.starts(), self.marks.ends()), (1, 1), "nothing was done twice");
        assert_eq!(record.messages(), ["before", "after"], "each line once and in order");
        assert!(record.diff.contains("+more"), "{}", record.diff);
        record
    }

    pub(crate) fn was_adopted(&self, run: &RunId) -> bool {
        self.fixture.events(run.as_str()).iter().any(|event| event["type"] == "run.adopted")
    }
}
