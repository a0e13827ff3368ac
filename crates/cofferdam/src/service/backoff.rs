//! How long a child that ended is left before it is started again. This file never reads the clock.

use std::time::Duration;

/// The first restart: most ends are accidents.
const AT_ONCE: Duration = Duration::from_millis(100);
/// The second, which doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The window: a child that has lived through it has got over what ended it before.
const WINDOW: Duration = Duration::from_secs(300);

/// The pauses of one child.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    last: Option<Duration>,
}

impl Backoff {
    /// The pause after a child that has lived so long.
    pub(super) fn after(&mut self, lived: Duration) -> Duration {
        let pause = match self.last {
            _ if lived >= WINDOW => AT_ONCE,
            None => AT_ONCE,
            Some(AT_ONCE) => FIRST_PAUSE,
            Some(pause) => (pause * 2).min(LONGEST_PAUSE),
        };
        self.last = Some(pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_fast_and_the_next_ones_are_not() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..8).map(|_| backoff.after(Duration::ZERO).as_secs()).collect();
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn a_child_that_lived_for_a_while_begins_anew() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.after(Duration::ZERO);
        }
        assert_eq!(backoff.after(WINDOW), AT_ONCE);
        assert_eq!(backoff.after(Duration::ZERO), FIRST_PAUSE);
    }
}
