//! What an operator changes while the service runs.

use cofferdam_core::ConfigUpdates;
use cofferdam_mandate::Mandate;

use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Row, values};

/// A key that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub key: String,
    /// What it is set to.
    pub value: String,
    /// Who set it.
    pub actor: String,
    /// When.
    pub at_ms: u64,
}

impl Store {
    /// Every key that is set, in their order.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn system_config(&self) -> Result<Vec<ConfigEntry>, Error> {
        const SQL: &str = "SELECT key, value, actor, at FROM system_config ORDER BY key";
        self.read(async move |session| session.all(SQL, &[], read_entry).await).await
    }

    /// Changes keys, all of them or none; without a value a key is unset. False if nothing was different before. The caller
    /// has checked keys and values.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn change_config(&self, mandate: &Mandate, updates: &ConfigUpdates) -> Result<bool, Error> {
        let (mandate, updates) = (mandate.clone(), updates.clone());
        let is_changed = self
            .write(async move |session| {
                let mut changed = 0;
                // In the order of the keys, so that no two changes wait for each other.
                for (key, value) in &updates {
                    changed += match value {
                        Some(value) => session
                            .execute(
                                "INSERT INTO system_config (key, value, actor, at) VALUES (?1, ?2, ?3, ?4) \
                                     ON CONFLICT (key) DO UPDATE SET value = excluded.value, \
                                     actor = excluded.actor, at = excluded.at \
                                     WHERE system_config.value <> excluded.value",
                                values![key, value, mandate.actor(), mandate.at_ms()],
                            )
                            .await?,
                        None => {
                            session.execute("DELETE FROM system_config WHERE key = ?1", values![key]).await?
                        }
                    };
                }
                if changed > 0 {
                    audit::record(session, &mandate).await?;
                }
                Ok(changed > 0)
            })
            .await?;
        failpoint("store.change_config");
        Ok(is_changed)
    }
}

fn read_entry(row: Row<'_>) -> Result<ConfigEntry, Error> {
    Ok(ConfigEntry {
        key: row.get("key")?,
        value: row.get("value")?,
        actor: row.get("actor")?,
        at_ms: row.get("at")?,
    })
}
