//! Forgets a run.

use cofferdam_core::RunId;
use rusqlite::params;

use super::fence::state_of;
use super::{Sqlite, execute};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn remove_run(&self, run: &RunId) -> Result<(), Error> {
        let run = run.clone();
        self.write(move |transaction| {
            let state = state_of(transaction, &run)?;
            if !state.is_final() {
                return Err(Error::NotFinal { run, state });
            }
            // Its attempts, events, messages and artifacts go with it.
            execute(transaction, "DELETE FROM runs WHERE id = ?", params![run.as_str()])
        })
        .await?;
        failpoint("store.remove_run");
        Ok(())
    }
}
