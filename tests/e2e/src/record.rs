//! What the command line says of a run, and whether that can be true.

use serde_json::Value;

use crate::fixture::Fixture;

/// One run as `cofferdam runs` shows it.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its id.
    pub run: String,
    /// What `runs show` says.
    pub shown: Value,
    /// What `runs events` says, in order.
    pub events: Vec<Value>,
    /// What `runs diff` says.
    pub diff: String,
}

impl Record {
    /// The only run of a fixture. Asking is itself a start of the binary, so it recovers what died.
    ///
    /// # Panics
    /// If there is not exactly one run, or the binary does not answer.
    #[must_use]
    pub fn of_the_only_run(fixture: &Fixture) -> Self {
        let listed = fixture.cofferdam(["runs", "list", "--json"]);
        assert_eq!(listed.code, Some(0), "runs list: {}", listed.stderr);
        let listed = listed.json();
        let runs = listed.as_array().expect("a list");
        assert_eq!(runs.len(), 1, "one run was accepted: {listed}");
        Self::of(fixture, runs[0]["run"].as_str().expect("a run has an id"))
    }

    /// One run.
    ///
    /// # Panics
    /// If the binary does not answer.
    #[must_use]
    pub fn of(fixture: &Fixture, run: &str) -> Self {
        let shown = fixture.cofferdam(["runs", "show", "--json", run]).json();
        let events = fixture.cofferdam(["runs", "events", "--json", run]);
        let events = String::from_utf8(events.stdout).expect("events are text");
        let events = events.lines().map(|line| serde_json::from_str(line).expect("an event is JSON"));
        let diff = fixture.cofferdam(["runs", "diff", run]);
        let diff = String::from_utf8_lossy(&diff.stdout).into_owned();
        Self { run: run.to_owned(), shown, events: events.collect(), diff }
    }

    /// The run's state.
    #[must_use]
    pub fn state(&self) -> &str {
        self.shown["state"].as_str().unwrap_or_default()
    }

    /// The outcome's result and, for a failure, its class: `succeeded`, `failed/lost`, `timed_out`, …
    #[must_use]
    pub fn outcome(&self) -> String {
        let text = |name: &str| self.shown["outcome"][name].as_str().unwrap_or_default().to_owned();
        match text("class") {
            class if class.is_empty() => text("result"),
            class => format!("{}/{class}", text("result")),
        }
    }

    /// The data of every event of a type, in order.
    #[must_use]
    pub fn data_of(&self, event_type: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == event_type).map(|event| &event["data"]).collect()
    }

    /// What the agent printed, line by line.
    #[must_use]
    pub fn messages(&self) -> Vec<&str> {
        self.data_of("agent.message").iter().filter_map(|data| data["text"].as_str()).collect()
    }

    /// Checks what holds for every run that has ended, however it did: one final state, told once, as the
    /// last thing but the sandbox's end, in events without gaps, and nothing told twice.
    ///
    /// # Panics
    /// If it does not hold.
    pub fn assert_ended_once(&self) {
        let types: Vec<&str> = self.events.iter().filter_map(|event| event["type"].as_str()).collect();
        let numbers: Vec<u64> = self.events.iter().filter_map(|event| event["seq"].as_u64()).collect();
        let expected: Vec<u64> = (1..=self.events.len() as u64).collect();
        assert_eq!(numbers, expected, "events are numbered without gaps: {types:?}");
        let count = |name: &str| types.iter().filter(|found| **found == name).count();
        assert_eq!(count("run.queued"), 1, "{types:?}");
        assert_eq!(count("run.finished"), 1, "{types:?}");
        for once in ["agent.started", "agent.finished", "sandbox.created", "sandbox.sealed"] {
            let attempts = self.shown["attempts"].as_u64().unwrap_or_default();
            // Each try of a phase of a spec has a process of its own, in the sandbox of its attempt.
            let tries = if once == "sandbox.created" { 0 } else { count("phase.started") as u64 };
            let most = attempts.max(1).max(tries);
            assert!(count(once) as u64 <= most, "{once} more than once an attempt or try: {types:?}");
        }
        let after = types.iter().skip_while(|name| **name != "run.finished").skip(1);
        for name in after {
            assert!(name.starts_with("sandbox."), "{name} after the end: {types:?}");
        }
        let finished = self.data_of("run.finished")[0];
        assert_eq!(finished["state"], self.shown["state"], "the event and the record agree");
        assert_eq!(finished["outcome"], self.shown["outcome"], "the event and the record agree");
        let final_states = ["succeeded", "failed", "cancelled", "timed_out"];
        assert!(final_states.contains(&self.state()), "{} is not final", self.state());
    }
}
