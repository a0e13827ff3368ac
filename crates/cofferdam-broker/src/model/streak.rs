//! Failures of the model's server in a row. Some CLIs repeat a failed request for minutes, without a setting
//! that says how often: whoever waits for them should rather be told, and a retry is the runner's.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cofferdam_core::{ModelTrouble, TroubleKind};
use tokio::time::Instant;

/// So many failures are none of chance,
const ENOUGH: u32 = 3;
/// if they have lasted for so long. CLIs that repeat quickly have their own end of it.
const LONG_ENOUGH: Duration = Duration::from_secs(10);
/// After such a pause it is another matter that is asked for. It is longer than any wait that an agent is told.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// The failures since the last good answer.
#[derive(Debug, Default)]
pub(crate) struct Streak(Mutex<Option<Failures>>);

#[derive(Debug)]
struct Failures {
    count: u32,
    first: Instant,
    last: Instant,
    /// How the last one failed.
    message: String,
}

impl Streak {
    /// A call has ended, in this trouble or in none.
    pub(crate) fn note(&self, trouble: Option<&ModelTrouble>, now: Instant) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(trouble) = trouble else {
            *failures = None;
            return;
        };
        if !is_repeated(trouble.kind) {
            return;
        }
        let before = failures.take().filter(|failures| now.duration_since(failures.last) <= FORGOTTEN);
        let (count, first) = before.map_or((1, now), |before| (before.count + 1, before.first));
        *failures = Some(Failures { count, first, last: now, message: trouble.message.clone() });
    }

    /// What to tell an agent that would go on asking. It is told once: what it asks then is forwarded again.
    pub(crate) fn give_up(&self, now: Instant) -> Option<String> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |it: &mut Failures| {
            let lasted = now.duration_since(it.first) >= LONG_ENOUGH;
            it.count >= ENOUGH && lasted && now.duration_since(it.last) <= FORGOTTEN
        };
        let Failures { count, message, .. } = failures.take_if(is_over)?;
        Some(format!("{message}; {count} requests in a row have failed, and this is the last"))
    }
}

/// Whether the CLIs ask again after this.
fn is_repeated(kind: TroubleKind) -> bool {
    match kind {
        TroubleKind::Quota | TroubleKind::Overloaded | TroubleKind::Unreachable | TroubleKind::Broken => true,
        TroubleKind::Auth | TroubleKind::Rejected | TroubleKind::Budget => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(kind: TroubleKind) -> ModelTrouble {
        ModelTrouble { kind, message: "it failed".to_owned(), status: None, retry_after_ms: None }
    }

    /// A streak of failures at these seconds, and when it began.
    fn streak(seconds: &[u64]) -> (Streak, Instant) {
        let (streak, start) = (Streak::default(), Instant::now());
        for second in seconds {
            let at = start + Duration::from_secs(*second);
            streak.note(Some(&trouble(TroubleKind::Overloaded)), at);
        }
        (streak, start)
    }

    fn gives_up(seconds: &[u64], asked_at: u64) -> bool {
        let (streak, start) = streak(seconds);
        streak.give_up(start + Duration::from_secs(asked_at)).is_some()
    }

    #[test]
    fn an_agent_is_told_after_some_failures_over_some_time() {
        assert!(!gives_up(&[0, 2], 14), "two may be chance");
        assert!(!gives_up(&[0, 1, 2, 3], 3), "whoever repeats quickly ends by itself");
        assert!(gives_up(&[0, 2, 6], 14));
        assert!(gives_up(&[0, 20, 40], 40));
    }

    #[test]
    fn it_is_told_once_and_then_asked_again() {
        let (streak, start) = streak(&[0, 5, 10]);
        let told = streak.give_up(start + Duration::from_secs(10)).expect("it is enough");
        assert_eq!(told, "it failed; 3 requests in a row have failed, and this is the last");
        assert_eq!(streak.give_up(start + Duration::from_secs(10)), None);
    }

    #[test]
    fn a_good_answer_or_a_pause_begins_anew() {
        let (streak, start) = streak(&[0, 5, 10]);
        streak.note(None, start + Duration::from_secs(11));
        assert_eq!(streak.give_up(start + Duration::from_secs(11)), None);
        assert!(!gives_up(&[0, 5, 10], 60), "a follow-up, a minute later");
        assert!(!gives_up(&[0, 5, 50], 60));
    }

    #[test]
    fn what_no_agent_repeats_does_not_count() {
        let (streak, start) = streak(&[0, 5]);
        let now = start + Duration::from_secs(10);
        streak.note(Some(&trouble(TroubleKind::Rejected)), now);
        assert_eq!(streak.give_up(now), None);
        streak.note(Some(&trouble(TroubleKind::Broken)), now);
        assert!(streak.give_up(now).is_some());
    }
}
