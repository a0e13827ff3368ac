//! What of `system_config` concerns a process that executes runs: it follows the record, and is not started again for it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cofferdam_core::{NodeId, SystemConfig};
use cofferdam_operations::{now_ms, random_bits};
use cofferdam_store::{Listens, Store};
use tokio::time::{sleep, timeout};

/// How often the record is looked at, should a wake be lost.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// And at most, whatever else goes on.
const AT_MOST_EVERY: Duration = Duration::from_millis(100);

/// What was on record last. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct FollowedConfig(Arc<RwLock<SystemConfig>>);

impl FollowedConfig {
    /// What is known now.
    pub(crate) fn now(&self) -> SystemConfig {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads it once. What cannot be read leaves what was known.
    pub(crate) async fn read(&self, store: &Store) {
        match store.system_config().await {
            Ok(entries) => {
                let entries = entries.into_iter().map(|entry| (entry.key, entry.value));
                *self.0.write().unwrap_or_else(PoisonError::into_inner) = SystemConfig::of_record(entries);
            }
            Err(error) => tracing::debug!(%error, "the configuration on record could not be read"),
        }
    }

    /// Follows the record for as long as this process lives.
    pub(crate) async fn follow(self, store: Store) {
        let wakes = store.wakes(&NodeId::new(now_ms(), random_bits()), Listens::Worker);
        let mut count = wakes.count();
        loop {
            self.read(&store).await;
            sleep(AT_MOST_EVERY).await;
            let _ = timeout(LOOK_EVERY, count.changed()).await;
        }
    }
}
