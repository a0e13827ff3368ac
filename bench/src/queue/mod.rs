//! `queue`: how many runs a second the record takes from acceptance to its end, without a sandbox, against a bare loop
//! that executes the same statements.

mod bare_sqlite;
mod ours;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use cofferdam_store::Store;
use serde_json::json;

use crate::stats::Times;
use crate::targets::{Bound, Target, tell};

/// What `queue` is told.
#[derive(clap::Args)]
pub(crate) struct QueueArgs {
    /// Runs in each round.
    #[arg(long, default_value_t = 300)]
    runs: u32,
    /// How often each of them is measured.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/queue.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &QueueArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let store = runtime.block_on(Store::open_sqlite(&folder.path().join("ours.db")))?;
    // The same schema: ours makes it.
    let bare = folder.path().join("bare.db");
    runtime.block_on(async {
        Store::open_sqlite(&bare).await?.close().await;
        anyhow::Ok(())
    })?;
    let mut bare = bare_sqlite::Bare::open(&bare)?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    // The first round fills caches and is thrown away.
    for round in 0..=args.rounds {
        // In turn, so that a busy moment of the machine hits both.
        let own = runtime.block_on(ours::round(&store, round, args.runs))?;
        let peer = bare.round(round, args.runs)?;
        if round > 0 {
            ours.add(own);
            theirs.add(peer);
        }
        eprint!("\rround {round} of {}", args.rounds);
    }
    eprintln!();
    let per_second = |times: &Times| f64::from(args.runs) * 1e3 / times.p50_ms();
    let free = |name: &str, is| Target { name: name.to_owned(), is, bound: Bound::Free };
    let targets = [
        Target {
            name: "runs a second / bare loop of the same statements, SQLite, p50".to_owned(),
            is: theirs.p50_ms() / ours.p50_ms(),
            bound: Bound::AtLeast(0.5),
        },
        free("ours, runs a second", per_second(&ours)),
        free("bare loop, runs a second", per_second(&theirs)),
    ];
    let details = json!({ "rounds": args.rounds, "runs": args.runs, "sqlite_synchronous": "full" });
    tell("queue", &targets, &details, &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A different random part for each run.
fn number(round: usize, index: u32) -> u128 {
    (round as u128) << 32 | u128::from(index)
}

/// What a round takes.
fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Duration> {
    let started = std::time::Instant::now();
    work()?;
    Ok(started.elapsed())
}
