//! Forgets a run.

use cofferdam_core::RunId;

use super::Postgres;
use super::fence::state_of;
use crate::error::Error;
use crate::failpoint::failpoint;

impl Postgres {
    pub(crate) async fn remove_run(&self, run: &RunId) -> Result<(), Error> {
        self.write(|mut session| async move {
            let state = state_of(&mut session, run).await?;
            if !state.is_final() {
                return Err(Error::NotFinal { run: run.clone(), state });
            }
            // Its attempts, events, messages and artifacts go with it.
            session
                .query("DELETE FROM runs WHERE id = $1")
                .bind(run.as_str())
                .execute(session.connection())
                .await?;
            session.done(())
        })
        .await?;
        failpoint("store.remove_run");
        Ok(())
    }
}
