//! A command of the binary, running or finished.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it printed as data.
    pub stdout: Vec<u8>,
    /// What it said to people.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

impl Finished {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn of(mut command: Command) -> Self {
        let started = Instant::now();
        let output = command.stdin(Stdio::null()).output().expect("the binary can be started");
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            took: started.elapsed(),
        }
    }

    /// The JSON object that it printed.
    ///
    /// # Panics
    /// If it printed something else.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| {
            panic!("not JSON ({error}): {}\n{}", String::from_utf8_lossy(&self.stdout), self.stderr)
        })
    }

    /// The outcome's result and, for a failure, its class: `succeeded`, `failed/agent`, `timed_out`, …
    #[must_use]
    pub fn outcome(&self) -> String {
        let outcome = &self.json()["outcome"];
        let text = |name: &str| outcome[name].as_str().unwrap_or_default().to_owned();
        match text("class") {
            class if class.is_empty() => text("result"),
            class => format!("{}/{class}", text("result")),
        }
    }

    /// The diff of `--json`.
    #[must_use]
    pub fn diff(&self) -> String {
        self.json()["diff"].as_str().unwrap_or_default().to_owned()
    }

    /// The run's id.
    #[must_use]
    pub fn run_id(&self) -> String {
        self.json()["run"].as_str().unwrap_or_default().to_owned()
    }
}

/// A command that runs.
pub struct Running {
    child: Child,
    started: Instant,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Running {
    /// Starts a command.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn of(mut command: Command) -> Self {
        let started = Instant::now();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.expect("the binary can be started");
        let stderr = BufReader::new(child.stderr.take().expect("stderr was piped"));
        Self { child, started, stderr, said: String::new() }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has said a line with these words on stderr.
    ///
    /// # Panics
    /// If it ends first.
    pub fn wait_for(&mut self, words: &str) {
        loop {
            let mut line = String::new();
            let count = self.stderr.read_line(&mut line).expect("stderr can be read");
            self.said.push_str(&line);
            if line.contains(words) {
                return;
            }
            assert!(count > 0, "it ended without saying `{words}`: {}", self.said);
        }
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child's id is positive");
        kill_process(pid, signal).expect("the command is there");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it cannot be waited for.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let mut stdout = self.child.stdout.take().expect("stdout was piped");
        let reading = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
        });
        let mut rest = Vec::new();
        self.stderr.read_to_end(&mut rest).expect("stderr can be read");
        self.said.push_str(&String::from_utf8_lossy(&rest));
        let status = self.child.wait().expect("a child can be waited for");
        Finished {
            code: status.code(),
            stdout: reading.join().expect("the reader does not panic"),
            stderr: self.said,
            took: self.started.elapsed(),
        }
    }
}
