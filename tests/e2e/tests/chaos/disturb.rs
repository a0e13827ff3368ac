//! What goes wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_e2e::{Database, PrivateEngine};

use crate::chaos::cast::Cast;
use crate::chaos::random::Random;

/// Does one thing after the other.
pub(crate) struct Disturber {
    random: Random,
    kills_engine: bool,
    done: BTreeMap<&'static str, u32>,
}

impl Disturber {
    pub(crate) fn new(random: Random, kills_engine: bool) -> Self {
        Self { random, kills_engine, done: BTreeMap::new() }
    }

    /// What was done, for the log.
    pub(crate) fn summary(&self) -> String {
        self.done.iter().map(|(what, times)| format!("{what}: {times}")).collect::<Vec<_>>().join(", ")
    }

    /// Waits a moment, and does one thing.
    pub(crate) fn disturb(&mut self, cast: &mut Cast, database: Option<&Database>) {
        let pause = 200 + self.random.below(800);
        std::thread::sleep(Duration::from_millis(pause));
        let index = usize::try_from(self.random.below(3)).expect("a small number");
        let what = match (self.random.below(12), database) {
            (0..=3, _) => strike(cast, index, "dispatcher"),
            (4..=6, _) => strike(cast, index, "broker"),
            (7..=8, _) => {
                match cast.members[index].service.take() {
                    Some(service) => service.behead(),
                    None => cast.start(index),
                }
                Some("supervisor killed or started")
            }
            (9..=10, Some(database)) => {
                database.cut_connections();
                Some("connections cut")
            }
            (9..=10, None) => strike(cast, index, "dispatcher"),
            _ if self.kills_engine => cast.engine.as_mut().map(PrivateEngine::kill_or_revive),
            _ => strike(cast, index, "broker"),
        };
        if let Some(what) = what {
            *self.done.entry(what).or_default() += 1;
        }
    }
}

fn strike(cast: &mut Cast, index: usize, role: &str) -> Option<&'static str> {
    let Some(service) = &cast.members[index].service else {
        cast.start(index);
        return None;
    };
    match (service.strike(role), role) {
        (false, _) => None,
        (true, "dispatcher") => Some("dispatcher killed"),
        (true, _) => Some("broker killed"),
    }
}
