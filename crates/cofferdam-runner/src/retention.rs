//! Forgets what runs have left once it was kept long enough.

use std::path::Path;

use cofferdam_core::{RetentionDays, RetentionSettings, RunId, with_causes};
use cofferdam_store::{ArtifactStore, Error, Expired, Retention, Store};

use crate::home::Home;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a round has removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Runs that are forgotten whole.
    pub runs: u64,
    /// Events that are.
    pub events: u64,
    /// Entries of the audit that are.
    pub audit: u64,
    /// Files and objects that are gone.
    pub files: u64,
    /// Files and objects that are forgotten and could not be removed.
    pub stuck: u64,
}

/// Removes what is older than the settings say, until nothing of it is left. Any node may do it at any time; two at once share the
/// work.
///
/// # Errors
/// If the database fails. A file that cannot be removed is counted and said, and no error.
pub async fn run_once(
    store: &Store,
    artifacts: &ArtifactStore,
    home: &Home,
    settings: &RetentionSettings,
    now_ms: u64,
) -> Result<Removed, Error> {
    let retention = Retention {
        runs_before_ms: before(settings.runs_days, now_ms),
        events_before_ms: before(settings.events_days, now_ms),
        artifacts_before_ms: before(settings.artifacts_days, now_ms),
        audit_before_ms: before(settings.audit_days, now_ms),
    };
    let mut removed = Removed::default();
    if retention == Retention::default() {
        return Ok(removed);
    }
    loop {
        let expired = store.expire(&retention).await?;
        if expired == Expired::default() {
            return Ok(removed);
        }
        removed.runs += expired.runs.len() as u64;
        removed.events += expired.events;
        removed.audit += expired.audit;
        for place in &expired.artifacts {
            match crate::artifacts::remove(artifacts, home, place).await {
                Ok(()) => removed.files += 1,
                Err(error) => {
                    removed.stuck += 1;
                    tracing::warn!(%place, error = %with_causes(&error), "a file of an old run could not be removed");
                }
            }
        }
        for run in &expired.runs {
            remove_folder(&home.runs(), run);
        }
    }
}

/// 0 days is for ever.
fn before(days: RetentionDays, now_ms: u64) -> Option<u64> {
    match days.count() {
        0 => None,
        days => Some(now_ms.saturating_sub(u64::from(days) * DAY_MS)),
    }
}

/// What is left of the run's folder: copies of objects, and empty folders.
fn remove_folder(runs: &Path, run: &RunId) {
    if let Err(error) = cofferdam_sandbox::remove_tree(&runs.join(run.as_str())) {
        tracing::warn!(run.id = %run, %error, "the folder of an old run could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_back_from_now_and_none_is_for_ever() {
        let days = |text: &str| -> RetentionDays { text.parse().expect("a number") };
        assert_eq!(before(days("0"), 10 * DAY_MS), None);
        assert_eq!(before(days("3"), 10 * DAY_MS), Some(7 * DAY_MS));
    }
}
