//! Hands an attempt that is under way to a new owner. No new attempt is counted.

use cofferdam_core::{EventType, NewEvent, NodeId, RunId, RunState};
use serde_json::json;

use super::Store;
use super::append::number_and_insert;
use super::claim::read_claimed;
use crate::claim_rules::Owner;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::adopted_state;
use crate::lease::Claimed;
use crate::session::{Session, values};

impl Store {
    /// Gives a node that was restarted the attempt of its former self, with a new token. `None` if the node
    /// does not hold the run.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn adopt(
        &self,
        node: &NodeId,
        run: &RunId,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let (node, run) = (node.clone(), run.clone());
        let adopted = self
            .write(async move |session| {
                let until_ms = now_ms.saturating_add(lease_ms);
                let adopted = session
                    .optional(
                        "UPDATE runs SET state = ?5, token = token + 1, lease_expires_at_ms = ?3, updated_at = ?4 \
                         WHERE id = ?1 AND state = ?6 AND lease_node = ?2 RETURNING id, request, attempts, token",
                        values![&run, &node, until_ms, now_ms, adopted_state(), RunState::Running],
                        |row| read_claimed(row, &node),
                    )
                    .await?;
                record(session, adopted, &node, now_ms).await
            })
            .await?;
        if adopted.is_some() {
            failpoint("store.adopt");
        }
        Ok(adopted)
    }

    /// Takes over the attempt of an owner that is known to be dead, with a new token. `None` if somebody else
    /// was faster: the token is no longer the expected one, or the run no longer running.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn adopt_for_recovery(
        &self,
        run: &RunId,
        expected_token: u64,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let (run, Owner { node, place }) = (run.clone(), new_owner.clone());
        let adopted = self
            .write(async move |session| {
                let until_ms = now_ms.saturating_add(lease_ms);
                let (from, to) = (RunState::Running, adopted_state());
                let adopted = session
                    .optional(
                        "UPDATE runs SET state = ?5, token = token + 1, lease_node = ?2, lease_expires_at_ms = ?3, \
                         updated_at = ?4, lease_place = ?8 \
                         WHERE id = ?1 AND state = ?6 AND token = ?7 RETURNING id, request, attempts, token",
                        values![&run, &node, until_ms, now_ms, to, from, expected_token, &place],
                        |row| read_claimed(row, &node),
                    )
                    .await?;
                record(session, adopted, &node, now_ms).await
            })
            .await?;
        if adopted.is_some() {
            failpoint("store.adopt_for_recovery");
        }
        Ok(adopted)
    }
}

async fn record(
    session: &mut Session<'_>,
    adopted: Option<Claimed>,
    node: &NodeId,
    now_ms: u64,
) -> Result<Option<Claimed>, Error> {
    let Some(claimed) = &adopted else { return Ok(None) };
    let number = claimed.attempt.number;
    let event = NewEvent::new(now_ms, EventType::RunAdopted, json!({ "node": node, "attempt": number }));
    number_and_insert(session, &claimed.attempt.run, Some(number), &[event]).await?;
    Ok(adopted)
}
