//! Times of one thing, measured over and over.

use std::time::Duration;

/// Times of one thing.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
        self.0.sort();
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn p50_ms(&self) -> f64 {
        self.percentile_ms(50)
    }

    pub(crate) fn p95_ms(&self) -> f64 {
        self.percentile_ms(95)
    }

    pub(crate) fn p99_ms(&self) -> f64 {
        self.percentile_ms(99)
    }

    /// The time that this many of a hundred do not exceed.
    fn percentile_ms(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}
