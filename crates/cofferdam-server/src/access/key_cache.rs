//! Keys that were looked up a moment ago. A key that is revoked opens nothing as soon as what is known of it has aged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cofferdam_core::Actor;
use cofferdam_operations::KeyText;
use cofferdam_store::{KeyRecord, Store};
use subtle::ConstantTimeEq;

use crate::app::now_ms;

/// How long a key opens something after it was revoked, at most.
const FRESH: Duration = Duration::from_secs(1);
/// The record says to the minute when a key was used.
const USED_EVERY_MS: u64 = 60_000;
/// More keys than anybody has in use at once; beyond that they are looked up each time.
const MOST: usize = 1_000;

#[derive(Debug)]
struct Known {
    record: KeyRecord,
    looked_up: Instant,
    used_at_ms: u64,
}

/// Keys by their hash.
#[derive(Debug, Default)]
pub(crate) struct KeyCache {
    known: Mutex<HashMap<String, Known>>,
    /// Held by whoever looks a key up again.
    again: tokio::sync::Mutex<()>,
}

impl KeyCache {
    /// Who holds the key of this text, if it opens anything.
    ///
    /// The text is hashed before anything is compared, so that the time that it takes says nothing of how near a guess
    /// was; the hash that was found is compared in constant time all the same.
    pub(crate) async fn find(
        &self,
        key: &KeyText,
        store: &Store,
    ) -> Result<Option<Actor>, cofferdam_store::Error> {
        let sha256 = key.sha256();
        if let Some(found) = self.fresh(&sha256) {
            return Ok(live(found));
        }
        let Some(record) = store.key_of(&sha256).await? else { return Ok(None) };
        let now_ms = now_ms();
        let last_use = self.keep(&sha256, &record, now_ms);
        if record.revoked_at_ms.is_none()
            && last_use.is_none_or(|last| now_ms.saturating_sub(last) >= USED_EVERY_MS)
        {
            // It is a time for people to read: a full disk must not lock out those who only read.
            if let Err(error) = store.use_key(&record.id, now_ms).await {
                tracing::warn!(%error, key.id = %record.id, "the use of a key could not be written down");
            }
        }
        Ok(live(record))
    }

    /// The same for a stream that is open. One after the other: a thousand streams of one key, whose time is up at the same
    /// moment, are one look at the record.
    pub(crate) async fn find_again(
        &self,
        key: &KeyText,
        store: &Store,
    ) -> Result<Option<Actor>, cofferdam_store::Error> {
        let _turn = self.again.lock().await;
        self.find(key, store).await
    }

    fn fresh(&self, sha256: &str) -> Option<KeyRecord> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (hash, found) = known.get_key_value(sha256)?;
        let same = bool::from(hash.as_bytes().ct_eq(sha256.as_bytes()));
        (same && found.looked_up.elapsed() < FRESH).then(|| found.record.clone())
    }

    /// Returns when the key was last written down as used.
    fn keep(&self, sha256: &str, record: &KeyRecord, now_ms: u64) -> Option<u64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, key| key.looked_up.elapsed() < FRESH);
        }
        let before = known.get(sha256).map(|key| key.used_at_ms).or(record.used_at_ms);
        let is_due = before.is_none_or(|last| now_ms.saturating_sub(last) >= USED_EVERY_MS);
        let used_at_ms = if is_due { now_ms } else { before.unwrap_or(now_ms) };
        if known.len() < MOST {
            let key = Known { record: record.clone(), looked_up: Instant::now(), used_at_ms };
            known.insert(sha256.to_owned(), key);
        }
        before
    }
}

fn live(record: KeyRecord) -> Option<Actor> {
    match record.revoked_at_ms {
        None => Some(Actor::Key { id: record.id, owner: record.owner, scopes: record.scopes }),
        Some(_) => None,
    }
}
