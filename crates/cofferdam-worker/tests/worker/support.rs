//! Drives a real worker over its pipes.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use cofferdam_core::{AgentEnd, FromWorker, Job, ToWorker, WallPlan, worker_line};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A worker process and what it has said.
pub(crate) struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<FromWorker>,
    /// Everything that was read so far.
    pub(crate) seen: Vec<FromWorker>,
    /// Where the agent's script is, if it has one.
    folder: Option<TempDir>,
}

impl Worker {
    pub(crate) fn start() -> Self {
        Self::start_by(Command::new(example()).arg("worker"))
    }

    pub(crate) fn start_by(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the worker starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.expect("the worker writes UTF-8");
                let line = FromWorker::parse(&line).expect("every line of stdout is the worker's own");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, lines, seen: Vec::new(), folder: None }
    }

    /// A worker whose seal was measured and whose agent was told to start.
    pub(crate) fn running(argv: &[&str]) -> Self {
        let mut worker = Self::start();
        worker.send(&ToWorker::Job(Box::new(job(argv))));
        worker.send(&ToWorker::START);
        worker
    }

    /// A worker that runs this job.
    pub(crate) fn running_job(job: Job) -> Self {
        Self::start().with_job(job)
    }

    /// Sends the job, and that its agent may start.
    pub(crate) fn with_job(mut self, job: Job) -> Self {
        self.send(&ToWorker::Job(Box::new(job)));
        self.send(&ToWorker::START);
        self
    }

    /// The same for a script in the part of Claude Code.
    pub(crate) fn with_script(self, script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut worker = self.with_job(job_of_script(folder.path(), script));
        worker.folder = Some(folder);
        worker
    }

    /// The same with a shell script.
    pub(crate) fn running_script(script: &str) -> Self {
        Self::running(&["bash", "-c", script])
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, line: &ToWorker) {
        self.send_raw(serde_json::to_string(line).expect("lines are JSON").as_bytes());
    }

    pub(crate) fn send_raw(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(&[line, b"\n"].concat()).expect("the worker reads its stdin");
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for a line of this type.
    pub(crate) fn wait_for(&mut self, line_type: &str) -> FromWorker {
        self.wait_until(|line| line.line_type == line_type)
    }

    /// Waits for a message of the agent that is this text.
    pub(crate) fn wait_for_text(&mut self, text: &str) -> FromWorker {
        self.wait_until(|line| line.data["text"] == text)
    }

    fn wait_until(&mut self, wanted: impl Fn(&FromWorker) -> bool) -> FromWorker {
        // Heartbeats come for ever, so each wait for a line alone would never end.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(error) => panic!("{error}; seen so far: {:?}", self.seen),
            };
            self.seen.push(line.clone());
            if wanted(&line) {
                return line;
            }
        }
    }

    /// Waits for the worker's end: the last line is `worker.exited`, and the status is 0.
    pub(crate) fn end(&mut self) -> AgentEnd {
        let last = self.wait_for(worker_line::EXITED);
        assert!(self.lines.recv_timeout(PATIENCE).is_err(), "nothing follows the last line");
        assert!(self.child.wait().expect("the worker is our child").success());
        for (index, line) in self.seen.iter().enumerate() {
            assert_eq!(line.seq, index as u64 + 1, "lines are numbered without gaps");
        }
        serde_json::from_value(last.data["end"].clone()).expect("the last line has an end")
    }

    /// The data of all lines of a type.
    pub(crate) fn data(&self, line_type: &str) -> Vec<&Value> {
        self.seen.iter().filter(|line| line.line_type == line_type).map(|line| &line.data).collect()
    }

    /// The texts of all lines of a type.
    pub(crate) fn texts(&self, line_type: &str) -> Vec<&str> {
        self.data(line_type).iter().map(|data| data["text"].as_str().expect("it has a text")).collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of `examples/worker.rs`, which cargo builds with the tests.
pub(crate) fn example() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.ancestors().nth(2).expect("tests are in target/*/deps").join("examples/worker");
    assert!(path.exists(), "{} is missing: run `cargo build -p cofferdam-worker --examples`", path.display());
    path
}

pub(crate) fn job(argv: &[&str]) -> Job {
    job_of(1, argv)
}

pub(crate) fn job_of(attempt: u32, argv: &[&str]) -> Job {
    serde_json::from_value(json!({
        "attempt": { "run": "run_00000000000000000000000000", "number": attempt },
        "agent": { "provider": "command", "argv": argv },
        "working_directory": "/tmp",
        "env": { "PATH": "/usr/local/bin:/usr/bin:/bin", "FROM_JOB": "yes" },
        "walls": WallPlan::none(),
        "probe_paths": ["/tmp"],
        "output_bytes": 64 << 20,
        "grace_ms": 1000,
    }))
    .expect("this is a job")
}

/// A job for Claude Code, whose part is played by a script of bash: how the real CLIs talk is tested with
/// transcripts of theirs, and this is about what the worker does with one that misbehaves.
pub(crate) fn job_of_script(folder: &Path, script: &str) -> Job {
    let program = folder.join("claude");
    let script = format!("#!/bin/bash\n{SCRIPT_WORDS}\n{script}");
    std::fs::write(&program, script).expect("the folder is ours");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("the file is ours");
    let setup = json!({
        "provider": "claude_code", "prompt": "the task",
        "model": null, "system_prompt": null, "max_turns": null,
    });
    let work = serde_json::from_value(setup).expect("this is work");
    Job { work, program: vec![program.display().to_string()], ..job(&["true"]) }
}

/// What a script can say as Claude Code: that its turn begins, that it took a message, that its turn is over.
const SCRIPT_WORDS: &str = r#"
    begin() { echo '{"type":"system","subtype":"init","session_id":"s1"}'; }
    use_tool() { echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}'; }
    took() { uuid=${1#*\"uuid\":\"}; echo "{\"type\":\"user\",\"isReplay\":true,\"uuid\":\"${uuid%%\"*}\"}"; }
    over() { echo "{\"type\":\"result\",\"is_error\":${2:-false},\"result\":\"$1\"}"; }
"#;

/// A line of the host.
pub(crate) fn message(id: &str, kind: &str, content: &str) -> ToWorker {
    ToWorker::Message { id: id.to_owned(), kind: kind.to_owned(), content: content.to_owned() }
}

/// Waits until there is no such process, not even a zombie.
pub(crate) fn assert_gone(pid: &str) {
    let deadline = Instant::now() + PATIENCE;
    while PathBuf::from(format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        std::thread::yield_now();
    }
}
