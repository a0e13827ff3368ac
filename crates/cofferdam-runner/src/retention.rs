//! Forgets what runs have left once it was kept long enough.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cofferdam_core::{RetentionDays, RetentionSettings, RunId, with_causes};
use cofferdam_store::{ArtifactStore, Error, Expired, Retention, Store};

use crate::home::Home;
use crate::workspace::{self, Cleared, Keep};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// A file beside the mirrors, of the time at which somebody last looked for old ones.
const CLEARED: &str = "cleared";

/// How often what was kept long enough is removed.
pub const EVERY: Duration = Duration::from_secs(3_600);
/// A file beside the ids of a service: what is kept, and as its own time when the last round was, or when it was first said.
const ROUND: &str = "retention";

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
    /// Mirrors and checkouts of this state folder that are gone.
    pub fetched: Cleared,
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
        artifacts_most_bytes: match artifacts {
            ArtifactStore::Folder => settings.artifacts_size.bytes(),
            // It fills no disk of ours, and what is in it may be worth more than we know.
            ArtifactStore::Bucket(_) => None,
        },
        audit_before_ms: before(settings.audit_days, now_ms),
        now_ms,
    };
    let mut removed = Removed { fetched: clear(home, settings, now_ms).await, ..Removed::default() };
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

/// How long it is until the next round. It is counted over restarts, since a service may be restarted more often than that. Whoever
/// keeps something else than before has the whole time to say otherwise: a newer version may remove more.
pub fn until_next_round(home: &Home, settings: &RetentionSettings, now_ms: u64) -> Duration {
    let mark = home.service().join(ROUND);
    let last = match std::fs::read_to_string(&mark) {
        Ok(kept) if kept == settings.to_string() => std::fs::metadata(&mark).and_then(|mark| mark.modified()),
        _ => {
            note_round(home, settings, now_ms);
            return EVERY;
        }
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms);
    // A mark of the future is that of a clock which was wrong.
    let since = last.ok().and_then(|last| now.duration_since(last).ok());
    since.map_or(Duration::ZERO, |since| EVERY.saturating_sub(since))
}

/// Notes that there was a round.
pub fn note_round(home: &Home, settings: &RetentionSettings, now_ms: u64) {
    let mark = home.service().join(ROUND);
    let noted = std::fs::write(&mark, settings.to_string())
        .and_then(|()| File::options().write(true).open(&mark))
        .and_then(|mark| mark.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms)));
    if let Err(error) = noted {
        tracing::warn!(%error, "when old runs were last looked for could not be noted");
    }
}

/// Removes old mirrors and checkouts, at most once a day: where only the command line is used, or a service never runs for an
/// hour, nobody else does. Nothing is lost by it that cannot be fetched again.
pub async fn clear_daily(home: &Home, settings: &RetentionSettings, now_ms: u64) -> Cleared {
    let mark = home.mirrors().join(CLEARED);
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms);
    let is_due = std::fs::metadata(&mark).and_then(|mark| mark.modified()).map_or(true, |last| {
        // A mark of the future is that of a clock which was wrong.
        now.duration_since(last).map_or(true, |since| since >= Duration::from_millis(DAY_MS))
    });
    if !is_due {
        return Cleared::default();
    }
    let marked = File::options().create(true).truncate(false).write(true).open(&mark);
    match marked.and_then(|mark| mark.set_modified(now)) {
        Ok(()) => clear(home, settings, now_ms).await,
        Err(error) => {
            tracing::warn!(%error, "that old mirrors and checkouts were looked for could not be noted");
            Cleared::default()
        }
    }
}

/// What was fetched for runs goes by the same clock. What cannot be removed is said, and no error: the record is more
/// important.
async fn clear(home: &Home, settings: &RetentionSettings, now_ms: u64) -> Cleared {
    let before_ms = before(settings.checkouts_days, now_ms);
    let keep = Keep {
        used_since: before_ms.map(|at_ms| SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms)),
        most_bytes: settings.checkouts_size.bytes(),
    };
    let home = home.clone();
    match tokio::task::spawn_blocking(move || workspace::clear(&home, keep)).await {
        Ok(Ok(cleared)) => cleared,
        Ok(Err(error)) => {
            tracing::warn!(error = %with_causes(&error), "old mirrors and checkouts could not be removed");
            Cleared::default()
        }
        Err(error) => {
            tracing::error!(%error, "the removal of old mirrors and checkouts panicked");
            Cleared::default()
        }
    }
}

fn before(days: RetentionDays, now_ms: u64) -> Option<u64> {
    days.days().map(|days| now_ms.saturating_sub(u64::from(days) * DAY_MS))
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

    /// The attack on the disk: nobody's. A service that never runs for an hour removed nothing.
    #[test]
    fn the_time_until_the_next_round_is_counted_over_restarts() {
        let folder = tempfile::tempdir().expect("a new folder");
        let home = Home::open(&folder.path().join("state")).expect("a new state folder");
        let kept = RetentionSettings::default();
        let minutes = |count: u64| Duration::from_secs(count * 60);
        let at = |minute: u64| 1_000_000_000 + minute * 60_000;
        assert_eq!(until_next_round(&home, &kept, at(0)), EVERY, "the first start says what is kept");
        assert_eq!(until_next_round(&home, &kept, at(20)), minutes(40), "started again");
        assert_eq!(until_next_round(&home, &kept, at(59)), minutes(1));
        assert_eq!(until_next_round(&home, &kept, at(75)), Duration::ZERO);
        note_round(&home, &kept, at(75));
        assert_eq!(until_next_round(&home, &kept, at(80)), minutes(55));
        let less = RetentionSettings { runs_days: "7".parse().expect("days"), ..kept };
        assert_eq!(until_next_round(&home, &less, at(200)), EVERY, "there is time to say otherwise");
        assert_eq!(until_next_round(&home, &less, at(190)), Duration::ZERO, "of a clock that was wrong");
    }

    #[test]
    fn days_are_counted_back_from_now_and_none_is_for_ever() {
        let days = |text: &str| -> RetentionDays { text.parse().expect("a number") };
        assert_eq!(before(days("forever"), 10 * DAY_MS), None);
        assert_eq!(before(days("3"), 10 * DAY_MS), Some(7 * DAY_MS));
    }
}
