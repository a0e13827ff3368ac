//! `broker`: what it costs to reach the model through the broker, against a direct connection to the same
//! server.
//!
//! Client, broker, gateway and server are processes of their own, as they are in reality, on one machine: what
//! the broker uses is taken from the others, and is part of what is measured.

mod client;
mod gate;
mod server;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cofferdam_core::gateway;
use serde_json::json;

use crate::stats::Times;
use crate::targets::{Bound, Target, tell};
use client::{Connection, Question, Way};

/// What `broker` is told.
#[derive(clap::Args)]
pub(crate) struct BrokerArgs {
    /// How often each way is measured.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Streams at a time.
    #[arg(long, default_value_t = 200)]
    streams: usize,
    /// Pieces of text in each answer.
    #[arg(long, default_value_t = 500)]
    pieces: usize,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/broker.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
    /// What this process does in the benchmark of another.
    #[arg(long, hide = true)]
    role: Option<Role>,
    #[arg(long, hide = true, default_value = ".")]
    folder: PathBuf,
    #[arg(long, hide = true, default_value_t = 0)]
    upstream: u16,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Role {
    Server,
    Broker,
    Gateway,
}

/// Calls of each round that are made one after the other, and those before that are not counted.
const ALONE: usize = 40;
const WARM_UP: usize = 5;
/// The sizes of a request: a first one, and one in the middle of a session.
const SMALL: usize = 1 << 10;
const LARGE: usize = 80 << 10;

/// One way to the model, with what was measured on it.
struct Lane {
    name: &'static str,
    way: Way,
    path: &'static str,
    small: Times,
    large: Times,
    first: Times,
    /// Megabytes a second, a number for each round.
    throughput: Vec<f64>,
}

pub(crate) fn run(args: &BrokerArgs) -> anyhow::Result<ExitCode> {
    match args.role {
        Some(Role::Server) => server::serve().map(|()| ExitCode::SUCCESS),
        Some(Role::Broker) => gate::serve(&args.folder, args.upstream).map(|()| ExitCode::SUCCESS),
        Some(Role::Gateway) => serve_gateway(&args.folder).map(|()| ExitCode::SUCCESS),
        None => measure(args),
    }
}

fn measure(args: &BrokerArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let (_server, port) = start(Role::Server, folder.path(), 0)?;
    let port: u16 = port.parse()?;
    let (_broker, _) = start(Role::Broker, folder.path(), port)?;
    let (_gateway, gateway_port) = start(Role::Gateway, folder.path(), port)?;
    let through = "/model/anthropic/v1/messages";
    let mut lanes = [
        Lane::new("direct", Way::Tcp(port), "/v1/messages"),
        Lane::new("broker", Way::Unix(folder.path().join(gateway::SOCKET)), through),
        Lane::new("gateway and broker", Way::Tcp(gateway_port.parse()?), through),
    ];
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for round in 0..=args.rounds {
        // One after the other in every round, so that a busy moment of the machine hits all of them.
        for lane in &mut lanes {
            let measured = runtime.block_on(lane.measure(args));
            measured.with_context(|| format!("`{}` failed", lane.name))?;
            if round == 0 {
                lane.forget();
            }
        }
        eprint!("\rround {} of {}", round, args.rounds);
    }
    eprintln!();
    let targets = targets(&lanes, args.streams);
    let details = lanes.iter().map(Lane::json).collect::<Vec<_>>();
    tell("broker", &targets, &json!(details), &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn targets(lanes: &[Lane; 3], streams: usize) -> Vec<Target> {
    let [direct, broker, whole] = lanes;
    let added = |name: &str, lane: &Lane, times: fn(&Lane) -> &Times, bound| Target {
        name: format!("{}: ms added at p50, {name}", lane.name),
        is: times(lane).p50_ms() - times(direct).p50_ms(),
        bound,
    };
    let throughput = |lane: &Lane, bound| Target {
        name: format!("{}: throughput / direct, {streams} streams", lane.name),
        is: median(&lane.throughput) / median(&direct.throughput),
        bound,
    };
    vec![
        added("small request", broker, |lane| &lane.small, Bound::AtMost(1.0)),
        added("80 KB request", broker, |lane| &lane.large, Bound::AtMost(1.0)),
        added("first byte, 80 KB", broker, |lane| &lane.first, Bound::AtMost(1.0)),
        throughput(broker, Bound::AtLeast(0.6)),
        added("small request", whole, |lane| &lane.small, Bound::Free),
        added("80 KB request", whole, |lane| &lane.large, Bound::Free),
        throughput(whole, Bound::Free),
    ]
}

impl Lane {
    fn new(name: &'static str, way: Way, path: &'static str) -> Self {
        let (small, large, first) = Default::default();
        Self { name, way, path, small, large, first, throughput: Vec::new() }
    }

    async fn measure(&mut self, args: &BrokerArgs) -> anyhow::Result<()> {
        let mut connection = Connection::open(&self.way).await?;
        let (small, large) = (Question::new(self.path, SMALL, 5), Question::new(self.path, LARGE, 5));
        for at in 0..WARM_UP + ALONE {
            let (short, long) = (connection.call(&small).await?, connection.call(&large).await?);
            if at >= WARM_UP {
                self.small.add(short.whole);
                self.large.add(long.whole);
                self.first.add(long.first);
            }
        }
        drop(connection);
        self.throughput.push(self.all_at_once(args).await?);
        Ok(())
    }

    /// Megabytes a second over all streams. Connecting is not part of it.
    async fn all_at_once(&self, args: &BrokerArgs) -> anyhow::Result<f64> {
        let question = Question::new(self.path, SMALL, args.pieces);
        let mut connections = Vec::new();
        for _ in 0..args.streams {
            connections.push(Connection::open(&self.way).await?);
        }
        let started = Instant::now();
        let mut streams = tokio::task::JoinSet::new();
        for mut connection in connections {
            let question = question.clone();
            streams.spawn(async move { connection.call(&question).await.map(|call| call.bytes) });
        }
        let mut bytes = 0;
        while let Some(ended) = streams.join_next().await {
            bytes += ended??;
        }
        Ok(bytes as f64 / 1e6 / started.elapsed().as_secs_f64())
    }

    fn forget(&mut self) {
        *self = Self::new(self.name, self.way.clone(), self.path);
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "rounds": self.throughput.len(),
            "small_p50_ms": self.small.p50_ms(),
            "small_p95_ms": self.small.p95_ms(),
            "large_p50_ms": self.large.p50_ms(),
            "large_p95_ms": self.large.p95_ms(),
            "large_first_byte_p50_ms": self.first.p50_ms(),
            "megabytes_per_second": median(&self.throughput),
        })
    }
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A process that is ended with the benchmark.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this program in a role, and waits for its first line.
fn start(role: Role, folder: &Path, upstream: u16) -> anyhow::Result<(Started, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "broker",
        "--role",
        &format!("{role:?}").to_lowercase(),
        "--upstream",
        &upstream.to_string(),
    ]);
    command.arg("--folder").arg(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().context("its output was asked for")?;
    let mut line = String::new();
    let started = Started(child);
    BufReader::new(stdout).read_line(&mut line)?;
    anyhow::ensure!(!line.is_empty(), "the {role:?} of the benchmark did not start");
    Ok((started, line.trim().to_owned()))
}

fn serve_gateway(folder: &Path) -> anyhow::Result<()> {
    println!("{}", cofferdam_worker::open_gateway(folder)?);
    std::io::Write::flush(&mut std::io::stdout())?;
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
