//! Forgets a run.

use cofferdam_core::RunId;

use super::fence::state_of;
use super::{Sqlite, begin};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn remove_run(&self, run: &RunId) -> Result<(), Error> {
        let mut writer = self.writer().await;
        let mut transaction = begin(&mut writer).await?;
        let state = state_of(&mut transaction, run).await?;
        if !state.is_final() {
            return Err(Error::NotFinal { run: run.clone(), state });
        }
        // Its attempts, events, messages and artifacts go with it.
        sqlx::query("DELETE FROM runs WHERE id = ?").bind(run.as_str()).execute(&mut *transaction).await?;
        transaction.commit().await?;
        failpoint("store.remove_run");
        Ok(())
    }
}
