//! Benchmarks: ratios against named peers, measured side by side in one run.
//!
//! Absolute times say more about a machine than about us, so nothing here is a test; a target is a ratio to
//! a peer that was measured in the same minute. `./dev bench NAME` builds the release binary first.

mod agent;
mod broker;
mod direct;
mod docker;
mod queue;
mod readers;
mod service;
mod small_repository;
mod start;
mod stats;
mod table;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// How fast a run starts and ends.
    Start(StartArgs),
    /// What a sealed Claude Code costs, against one by hand.
    Agent(agent::AgentArgs),
    /// What the way through the broker costs.
    Broker(broker::BrokerArgs),
    /// What a whole attempt in a container costs, against `docker run`.
    Docker(docker::DockerArgs),
    /// What a question to a model costs, against the same call by hand and against `claude-agent-sdk`.
    Direct(direct::DirectArgs),
    /// How many runs a second the record takes, against a bare loop of the same statements.
    Queue(queue::QueueArgs),
    /// How many runs a second the service takes to their end, and what `POST /execute` costs.
    Service(service::ServiceArgs),
}

/// What `start` is told.
#[derive(clap::Args)]
struct StartArgs {
    /// How often each of them is measured.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// The release binary; found beside this one by default.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/start.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().bench {
        Bench::Start(args) => start::run(&args),
        Bench::Agent(args) => agent::run(&args),
        Bench::Broker(args) => broker::run(&args),
        Bench::Docker(args) => docker::run(&args),
        Bench::Direct(args) => direct::run(&args),
        Bench::Queue(args) => queue::run(&args),
        Bench::Service(args) => service::run(&args),
    }
}
