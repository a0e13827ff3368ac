//! `queue`: how many runs a second the record takes from acceptance to its end, without a sandbox, against a bare loop
//! that executes the same statements.

mod bare_postgres;
mod bare_sqlite;
mod databases;
mod ours;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use cofferdam_store::{PostgresOptions, Store, StoreOptions};
use serde_json::json;

use crate::stats::Times;
use crate::targets::{Bound, Target, tell};
use databases::Databases;

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
    let mut targets = on_sqlite(args, &runtime, folder.path())?;
    match Databases::make()? {
        Some(databases) => targets.extend(on_postgres(args, &runtime, folder.path(), &databases)?),
        None => eprintln!("not measured: PostgreSQL; type ./dev bench queue"),
    }
    let details = json!({ "rounds": args.rounds, "runs": args.runs, "sqlite_synchronous": "full" });
    tell("queue", &targets, &details, &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn on_sqlite(
    args: &QueueArgs,
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
) -> anyhow::Result<Vec<Target>> {
    let bare = folder.join("bare.db");
    make_schema(runtime, &StoreOptions::Sqlite(bare.clone()))?;
    let store = runtime.block_on(Store::open_sqlite(&folder.join("ours.db")))?;
    let mut bare = bare_sqlite::Bare::open(&bare)?;
    compare(args, "SQLite", "bare loop", |round| {
        let own = runtime.block_on(ours::round(&store, round, args.runs))?;
        Ok((own, bare.round(round, args.runs)?))
    })
}

fn on_postgres(
    args: &QueueArgs,
    runtime: &tokio::runtime::Runtime,
    folder: &Path,
    databases: &Databases,
) -> anyhow::Result<Vec<Target>> {
    let options = |url: &str| -> anyhow::Result<_> {
        Ok(StoreOptions::Postgres(PostgresOptions::at(url.parse().context("no address of PostgreSQL")?)))
    };
    make_schema(runtime, &options(&databases.bare())?)?;
    let store = runtime.block_on(Store::open(&options(&databases.ours())?))?;
    let bare = bare_postgres::Bare::new(databases.programs(), folder, databases.bare())?;
    let targets = compare(args, "PostgreSQL", "pgbench", |round| {
        let own = runtime.block_on(ours::round(&store, round, args.runs))?;
        Ok((own, bare.round(round, args.runs)?))
    });
    runtime.block_on(store.close());
    targets
}

/// The peer works on the same schema: ours makes it.
fn make_schema(runtime: &tokio::runtime::Runtime, options: &StoreOptions) -> anyhow::Result<()> {
    runtime.block_on(async {
        Store::open(options).await?.close().await;
        Ok(())
    })
}

/// Measures both in turn, so that a busy moment of the machine hits both.
fn compare(
    args: &QueueArgs,
    database: &str,
    peer: &str,
    mut measure: impl FnMut(usize) -> anyhow::Result<(Duration, Duration)>,
) -> anyhow::Result<Vec<Target>> {
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    // The first round fills caches and is thrown away.
    for round in 0..=args.rounds {
        let (own, other) = measure(round)?;
        if round > 0 {
            ours.add(own);
            theirs.add(other);
        }
        eprint!("\r{database}: round {round} of {}", args.rounds);
    }
    eprintln!();
    let per_second = |times: &Times| f64::from(args.runs) * 1e3 / times.p50_ms();
    let free = |name: String, is| Target { name, is, bound: Bound::Free };
    Ok(vec![
        Target {
            name: format!("{database}: runs a second / {peer} of the same statements, p50"),
            is: theirs.p50_ms() / ours.p50_ms(),
            bound: Bound::AtLeast(0.5),
        },
        free(format!("{database}: ours, runs a second"), per_second(&ours)),
        free(format!("{database}: {peer}, runs a second"), per_second(&theirs)),
    ])
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
