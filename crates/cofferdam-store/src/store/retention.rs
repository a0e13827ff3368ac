//! Forgetting what was kept long enough.

use super::Store;
use crate::error::Error;
use crate::record::{Expired, Retention};

impl Store {
    /// Forgets a part of what is older than it should be kept; call it again until nothing is left. Dead letters keep
    /// their runs. The caller removes the files that are named.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn expire(&self, retention: &Retention) -> Result<Expired, Error> {
        match self {
            Self::Sqlite(store) => store.expire(retention).await,
            Self::Postgres(store) => store.expire(retention).await,
        }
    }
}
