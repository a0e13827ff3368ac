//! Three nodes, many runs of mixed kinds, and everything that can be killed is killed at random, by a seed. Afterwards the
//! record has to be true and nothing may be left.
//!
//! `COFFERDAM_CHAOS_SECONDS` and `COFFERDAM_CHAOS_RUNS` make it longer, `COFFERDAM_CHAOS_SEED` repeats one. The engine is
//! killed only with `COFFERDAM_CHAOS_ENGINE=kill`: one that was needs minutes until it has found itself again.

mod cast;
mod disturb;
mod random;
mod sent;
mod verdict;

use std::time::{Duration, Instant};

use cofferdam_e2e::Database;
use cofferdam_test_marks::once;

use crate::chaos::cast::Cast;
use crate::chaos::disturb::Disturber;
use crate::chaos::random::Random;
use crate::chaos::sent::Sender;

/// How long a test of the suite is. `./dev chaos` is longer.
const SECONDS: u64 = 15;
const RUNS: u64 = 36;

struct Plan {
    seconds: u64,
    runs: u64,
    seed: u64,
}

impl Plan {
    fn of_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
        let plan = Self {
            seconds: number("COFFERDAM_CHAOS_SECONDS").unwrap_or(SECONDS),
            runs: number("COFFERDAM_CHAOS_RUNS").unwrap_or(RUNS),
            seed: number("COFFERDAM_CHAOS_SEED").unwrap_or_else(|| {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                now.map_or(1, |now| now.as_secs())
            }),
        };
        eprintln!("repeat it with COFFERDAM_CHAOS_SEED={}", plan.seed);
        plan
    }
}

fn disturbed(mut cast: Cast, database: Option<&Database>) {
    let plan = Plan::of_environment();
    let mut random = Random::new(plan.seed);
    let sender = Sender::start(&cast, plan.runs, &mut random);
    let kills_engine = std::env::var("COFFERDAM_CHAOS_ENGINE").is_ok_and(|what| what == "kill");
    let mut disturber = Disturber::new(random, kills_engine);
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    while Instant::now() < until {
        disturber.disturb(&mut cast, database);
    }
    cast.heal();
    let accepted = sender.accepted();
    eprintln!("{} runs accepted, {}", accepted.len(), disturber.summary());
    assert_eq!(accepted.len() as u64, plan.runs, "every request was accepted in the end");
    cast.wait_for_all(&accepted);
    verdict::check(&cast, &accepted);
    cast.end();
}

#[once]
#[test]
fn on_sqlite_every_accepted_run_has_one_true_end() {
    disturbed(Cast::of_one_folder(), None);
}

#[once]
#[test]
fn on_postgres_every_accepted_run_has_one_true_end() {
    if let Some(database) = Database::create() {
        disturbed(Cast::of_many_folders(&database.url()), Some(&database));
    }
}
