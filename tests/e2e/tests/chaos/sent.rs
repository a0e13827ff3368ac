//! What is asked of the nodes: runs of mixed kinds, each sent until somebody has accepted it.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cofferdam_api::{Client, CreateRunRequest, MountRequest, RunOptions};
use cofferdam_core::RunId;

use crate::chaos::cast::Cast;
use crate::chaos::random::Random;

/// Nodes are away for seconds, never for minutes.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(300);

/// Sends from a thread of its own, while everything is disturbed.
pub(crate) struct Sender {
    accepted: Arc<Mutex<Vec<RunId>>>,
    sending: JoinHandle<()>,
}

impl Sender {
    pub(crate) fn start(cast: &Cast, runs: u64, random: &mut Random) -> Self {
        let requests: Vec<_> = (0..runs).map(|number| (number, request(cast, number, random))).collect();
        // One caller for all nodes: whose request a key names is for one caller to say.
        let first = cast.members[0].service.as_ref().expect("nothing was disturbed yet");
        let clients: Vec<Client> = cast
            .members
            .iter()
            .map(|member| Client::new(&member.address(), Some(&first.key())).expect("an address and a key"))
            .collect();
        let accepted = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&accepted);
        let sending = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            for (number, request) in requests {
                let run = runtime.block_on(send(&clients, number, &request));
                kept.lock().expect("nobody panics with it").push(run);
            }
        });
        Self { accepted, sending }
    }

    /// The runs that were accepted, once all were sent.
    pub(crate) fn accepted(self) -> Vec<RunId> {
        self.sending.join().expect("all are accepted in time");
        self.accepted.lock().expect("nobody panics with it").clone()
    }
}

/// Sends until somebody accepts. The key makes that happen once, however often an answer is lost.
async fn send(clients: &[Client], number: u64, request: &CreateRunRequest) -> RunId {
    let started = Instant::now();
    let key = format!("chaos-{number}");
    let turn = clients.iter().cycle().skip(usize::try_from(number).expect("a small number") % clients.len());
    for client in turn {
        match client.create_run(request, Some(&key)).await {
            Ok(run) => return run.id,
            Err(error) => {
                let waited = started.elapsed();
                assert!(waited < ACCEPTED_WITHIN, "run {number} is not accepted: {error}");
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    unreachable!("a cycle has no end")
}

/// As the agents' own CLIs do: one call after the other, and one that is cut is made again.
const STEPS: &str = r#"
import json, sys, time, urllib.error, urllib.request
run, steps = sys.argv[1], int(sys.argv[2])
for step in range(steps):
    message = {"role": "user", "content": f"run {run} step {step}"}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [message]}
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "none"}
    for attempt in range(200):
        url = "http://127.0.0.1:3128/model/anthropic/v1/messages"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
                answer.read()
                break
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    else:
        sys.exit("the model was never reached")
"#;

/// The kind of run that fails by itself.
pub(crate) const FAILS: u64 = 3;

/// One of each kind in turn, with a length by the seed.
fn request(cast: &Cast, number: u64, random: &mut Random) -> CreateRunRequest {
    let mark = cast.marks.folder().join(format!("run-{number}"));
    let mark = mark.display();
    let tenths = random.below(20);
    let pause = format!("{}.{}", tenths / 10, tenths % 10);
    let (body, options) = match number % 6 {
        0 => ("true".to_owned(), RunOptions::default()),
        1 => (format!("sleep {pause}"), RunOptions::default()),
        2 => (format!("echo {number} > made.txt; sleep {pause}"), RunOptions::default()),
        FAILS => (format!("sleep {pause}; exit 3"), RunOptions::default()),
        4 => {
            let options = RunOptions {
                network: Some("sealed".to_owned()),
                model_access: Some(true),
                ..RunOptions::default()
            };
            (format!("python3 -c '{STEPS}' {number} {}", 1 + random.below(3)), options)
        }
        _ => match &cast.engine {
            Some(_) => {
                let options = RunOptions { mode: Some("docker".to_owned()), ..RunOptions::default() };
                (format!("sleep {pause}"), options)
            }
            None => (format!("sleep {pause}"), RunOptions::default()),
        },
    };
    let script = format!("echo started >> {mark}; {body}; code=$?; echo ended >> {mark}; exit $code");
    CreateRunRequest {
        command: Some(vec!["sh".to_owned(), "-c".to_owned(), script]),
        lane: number.is_multiple_of(7).then(|| format!("lane-{}", number % 14)),
        options: RunOptions {
            // One that fails by itself does so each time; one that something is done to may need a few.
            max_attempts: Some(if number % 6 == FAILS { 2 } else { 8 }),
            mounts: vec![MountRequest { path: cast.marks.folder().display().to_string(), writable: true }],
            ..options
        },
        ..CreateRunRequest::default()
    }
}
