//! How soon `/health` answers while many read the events of live runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use cofferdam_api::client::Next;
use cofferdam_api::{Client, CreateRunRequest};
use cofferdam_core::{RunId, RunState};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::stats::Times;

/// Runs that are read.
const RUNS: usize = 5;
/// A line each fifth of a second, for ten.
const PROGRAM: &str = "for line in $(seq 50); do echo $line; sleep 0.2; done";

/// Answers of `/health` from the moment that all readers are there until the last run has ended. Each of the `readers` has
/// to see every event of its run in order.
pub(crate) async fn health_beside(client: &Client, readers: usize) -> anyhow::Result<Times> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let argv = ["sh", "-c", PROGRAM].map(str::to_owned).into();
        let request = CreateRunRequest { command: Some(argv), ..CreateRunRequest::default() };
        runs.push(client.create_run(&request, None).await?.id);
    }
    let all_there = Arc::new(Barrier::new(readers + 1));
    let mut reading = JoinSet::new();
    for number in 0..readers {
        reading.spawn(read(client.clone(), runs[number % RUNS].clone(), Arc::clone(&all_there)));
    }
    all_there.wait().await;
    let mut times = Times::default();
    let mut seen = Vec::new();
    while seen.len() < readers {
        let started = Instant::now();
        client.health().await?;
        times.add(started.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
        while let Some(reader) = reading.try_join_next() {
            seen.push(reader??);
        }
    }
    let events: u64 = seen.iter().sum();
    ensure!(events as usize >= readers * 50, "the readers have seen {events} events, which are too few");
    Ok(times)
}

/// Reads a run to its end, and says how many events it had.
async fn read(client: Client, run: RunId, all_there: Arc<Barrier>) -> anyhow::Result<u64> {
    let mut stream = client.stream(&run, 0);
    let mut seen = 0;
    loop {
        match stream.next().await? {
            Next::Event(event) => {
                ensure!(event.seq == seen + 1, "{run}: event {} follows {seen}", event.seq);
                seen = event.seq;
                if seen == 1 {
                    all_there.wait().await;
                }
            }
            Next::End(end) => {
                ensure!(end.state == RunState::Succeeded, "{run} ended as {}", end.state);
                return Ok(seen);
            }
        }
    }
}
