//! `service`: what the service does with empty runs, one after the other and many at once, and what `POST /execute` costs
//! with the real Claude Code, against the same CLI started by hand; and whether a thousand readers keep it from answering.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use cofferdam_api::client::Next;
use cofferdam_api::{Client, CreateRunRequest, RunOptions, RunQuery};
use cofferdam_core::{EventType, RunState};
use cofferdam_scripted_model::ScriptedModel;
use serde_json::{Value, json};

use crate::agent::{Stage, TASK};
use crate::readers;
use crate::stats::Times;
use crate::targets::{Bound, Target, tell};

/// What `service` is told.
#[derive(clap::Args)]
pub(crate) struct ServiceArgs {
    /// Empty runs that are sent at once.
    #[arg(long, default_value_t = 1_000)]
    runs: usize,
    /// Runs that are under way at once: a few for each processor, since a run waits for the disk as well.
    #[arg(long, default_value_t = 12)]
    capacity: usize,
    /// How many read the events of live runs while `/health` is asked.
    #[arg(long, default_value_t = 1_000)]
    readers: usize,
    /// How often `POST /execute` is measured; single runs ten times as often.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// The release binary; found beside this one by default.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The folder with `claude`; `COFFERDAM_AGENTS` by default.
    #[arg(long)]
    agents: Option<PathBuf>,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/service.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &ServiceArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let stage = Stage::new(args.binary.clone(), args.agents.clone(), folder.path())?;
    let repository = stage.repository("repository")?;
    let model = ScriptedModel::start(stage.script_for((0..=args.rounds).map(task)));
    let service = Service::start(&stage, &model, args.capacity)?;
    let client = service.client(&stage)?;
    // Fills caches.
    runtime.block_on(sustained(&client, args.capacity))?;
    let single = runtime.block_on(one_by_one(&client, args.rounds * 10))?;
    let per_second = runtime.block_on(sustained(&client, args.runs))?;
    let health = runtime.block_on(readers::health_beside(&client, args.readers))?;
    let (mut served, mut bare) = (Times::default(), Times::default());
    for round in 0..=args.rounds {
        let (own, peer) = (runtime.block_on(execute(&client, &repository, round))?, stage.bare(round)?);
        if round > 0 {
            served.add(own);
            bare.add(peer);
        }
        eprint!("\rround {round} of {}", args.rounds);
    }
    eprintln!();
    let free = |name: &str, is| Target { name: name.to_owned(), is, bound: Bound::Free };
    let targets = [
        Target {
            name: "empty runs a second, end to end, native".to_owned(),
            is: per_second,
            bound: Bound::AtLeast(40.0),
        },
        Target {
            name: "POST /execute with claude / bare claude -p, p50".to_owned(),
            is: served.p50_ms() / bare.p50_ms(),
            bound: Bound::AtMost(1.15),
        },
        Target {
            name: format!("/health beside {} readers, p99 ms", args.readers),
            is: health.p99_ms(),
            bound: Bound::AtMost(50.0),
        },
        free("from POST to the first event, p50 ms", single.first_event.p50_ms()),
        free("from POST to the first event, p99 ms", single.first_event.p99_ms()),
        free("from POST to the first line of the program, p50 ms", single.first_line.p50_ms()),
        free("from POST to the first line of the program, p99 ms", single.first_line.p99_ms()),
        free("POST /execute with claude, p50 ms", served.p50_ms()),
        free("bare claude -p, p50 ms", bare.p50_ms()),
    ];
    let details = json!({ "runs": args.runs, "capacity": args.capacity, "rounds": args.rounds });
    tell("service", &targets, &details, &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A run that says a word, in an empty workspace.
fn word() -> CreateRunRequest {
    command(&["echo", "word"])
}

fn command(argv: &[&str]) -> CreateRunRequest {
    let argv = argv.iter().map(|&word| word.to_owned()).collect();
    CreateRunRequest { command: Some(argv), ..CreateRunRequest::default() }
}

#[derive(Default)]
struct Single {
    first_event: Times,
    first_line: Times,
}

async fn one_by_one(client: &Client, rounds: usize) -> anyhow::Result<Single> {
    let mut single = Single::default();
    for _ in 0..rounds {
        let started = Instant::now();
        let run = client.create_run(&word(), None).await?.id;
        let mut stream = client.stream(&run, 0);
        let mut events = 0;
        loop {
            match stream.next().await? {
                Next::Event(event) => {
                    events += 1;
                    if events == 1 {
                        single.first_event.add(started.elapsed());
                    }
                    if event.known_type() == Some(EventType::AgentMessage) {
                        single.first_line.add(started.elapsed());
                    }
                }
                Next::End(end) => {
                    ensure!(end.state == RunState::Succeeded, "{run} ended as {}", end.state);
                    break;
                }
            }
        }
    }
    Ok(single)
}

/// Runs a second, from the first `POST` to the end of the last run. All of them have to end well.
async fn sustained(client: &Client, runs: usize) -> anyhow::Result<f64> {
    const SENDERS: usize = 4;
    let under_way = |limit| RunQuery {
        state: Some("queued,running".to_owned()),
        limit: Some(limit),
        ..RunQuery::default()
    };
    let started = Instant::now();
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut sent = Vec::new();
                for _ in (sender..runs).step_by(SENDERS) {
                    sent.push(client.create_run(&command(&["true"]), None).await?.id);
                }
                anyhow::Ok(sent)
            })
        })
        .collect();
    let mut sent = Vec::new();
    for sender in senders {
        sent.extend(sender.await??);
    }
    let deadline = started + Duration::from_secs(600);
    // Asked seldom, since whoever asks takes time from those who work.
    while !client.runs(&under_way(1)).await?.runs.is_empty() {
        ensure!(Instant::now() < deadline, "the runs do not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let time = started.elapsed();
    for run in sent {
        let state = client.run(&run).await?.state;
        ensure!(state == RunState::Succeeded, "{run} ended as {state}");
    }
    Ok(runs as f64 / time.as_secs_f64())
}

/// What Claude Code is told in a round: the same, and which round it is, so that the model knows where it stands.
fn task(round: usize) -> String {
    format!("{TASK} This is round {round}.")
}

async fn execute(client: &Client, repository: &Path, round: usize) -> anyhow::Result<Duration> {
    let request = CreateRunRequest {
        task: Some(task(round)),
        repo: Some(repository.display().to_string()),
        options: RunOptions { agent: Some("claude_code".to_owned()), ..RunOptions::default() },
        ..CreateRunRequest::default()
    };
    let started = Instant::now();
    let answer = client.execute(&request).await?;
    let time = started.elapsed();
    let diff = answer.diff.as_deref().unwrap_or_default();
    let did = (answer.success, diff, &answer.logs, &answer.error);
    ensure!(answer.success && diff.contains("+2\n"), "the agent did something else: {did:?}");
    Ok(time)
}

/// `cofferdam serve`, until it is dropped.
struct Service {
    child: Child,
    url: String,
}

impl Service {
    fn start(stage: &Stage, model: &ScriptedModel, capacity: usize) -> anyhow::Result<Self> {
        let mut command = stage.cofferdam(model);
        command.args(["serve", "--listen", "127.0.0.1:0", "--capacity", &capacity.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut service = Self { child, url: String::new() };
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let status = stage.cofferdam(model).args(["status", "--json"]).output()?;
            let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            if let (true, Some(listen)) = (status["ready"] == true, status["listen"].as_str()) {
                service.url = format!("http://{listen}");
                return Ok(service);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("the service does not get ready")
    }

    fn client(&self, stage: &Stage) -> anyhow::Result<Client> {
        let key = std::fs::read_to_string(stage.state().join("api-key"))?;
        Ok(Client::new(&self.url, Some(key.trim()))?)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
