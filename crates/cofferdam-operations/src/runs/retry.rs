//! The same request again, as a new run: retry and replay are one.

use cofferdam_core::{Action, Actor, RetryPolicy, RunId, RunRequest};
use cofferdam_store::Letter;

use super::Judged;
use crate::Operations;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

impl Operations {
    /// Judges whether an actor may have a request of before done again, by as many attempts as before unless it says how many. It
    /// is judged like a new one, by today's rules; the recorded policy stays as it is, and is refused where the actor may not have
    /// it.
    ///
    /// # Errors
    /// [`Error`]; [`Error::RunNotEnded`] for a run that is still under way.
    pub async fn judge_retry(
        &self,
        actor: &Actor,
        id: &RunId,
        max_attempts: Option<u32>,
    ) -> Result<Judged, Error> {
        let record = self.touchable_run(actor, Action::RetryRun, id).await?;
        if !record.state.is_final() {
            return Err(Error::RunNotEnded { run: id.clone(), state: record.state });
        }
        let request = RunRequest {
            id: RunId::new(now_ms(), random_bits()),
            retry: RetryPolicy {
                max_attempts: max_attempts.unwrap_or(record.request.retry.max_attempts),
                ..record.request.retry
            },
            replay_of: (record.letter == Letter::Dead).then(|| id.clone()),
            claimable_by: None,
            ..record.request
        };
        Ok(Judged::again(actor, request, id.clone()))
    }

    /// The same request again, as a new run. The run that has ended stays as it is.
    ///
    /// # Errors
    /// As [`Self::judge_retry`].
    pub async fn retry_run(&self, actor: &Actor, id: &RunId) -> Result<RunId, Error> {
        let judged = self.judge_retry(actor, id, None).await?;
        Ok(self.accept(judged, None).await?.run)
    }

    /// The same for a run that is a dead letter, which stays.
    ///
    /// # Errors
    /// As [`Self::judge_retry`], and [`Error::DeadLetterNotFound`].
    pub async fn replay_dead_letter(&self, actor: &Actor, id: &RunId) -> Result<RunId, Error> {
        match self.judge_retry(actor, id, None).await {
            Ok(judged) if judged.request().replay_of.is_some() => Ok(self.accept(judged, None).await?.run),
            Ok(_) | Err(Error::RunNotFound(_) | Error::RunNotEnded { .. }) => {
                Err(Error::DeadLetterNotFound(id.clone()))
            }
            Err(error) => Err(error),
        }
    }
}
