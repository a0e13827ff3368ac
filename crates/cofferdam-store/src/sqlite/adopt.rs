//! Hands an attempt that is under way to a new owner. No new attempt is counted.

use cofferdam_core::{EventType, NewEvent, NodeId, RunId, RunState};
use rusqlite::{Connection, params};
use serde_json::json;

use super::append::number_and_insert;
use super::claim::read_claimed;
use super::{Sqlite, int, optional};
use crate::claim_rules::Owner;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::adopted_state;
use crate::lease::Claimed;

impl Sqlite {
    pub(crate) async fn adopt(
        &self,
        node: &NodeId,
        run: &RunId,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let (node, run) = (node.clone(), run.clone());
        let adopted = self
            .write(move |transaction| {
                let claimed = optional(
                    transaction,
                    "UPDATE runs SET state = ?5, token = token + 1, lease_expires_at_ms = ?3, \
                     updated_at = ?4 WHERE id = ?1 AND state = ?6 AND lease_node = ?2 \
                     RETURNING id, request, attempts, token",
                    params![
                        run.as_str(),
                        node.as_str(),
                        int(now_ms.saturating_add(lease_ms)),
                        int(now_ms),
                        adopted_state().as_str(),
                        RunState::Running.as_str(),
                    ],
                    |row| read_claimed(row, &node),
                )?;
                let Some(claimed) = claimed else { return Ok(None) };
                record(transaction, &claimed, &node, now_ms)?;
                Ok(Some(claimed))
            })
            .await?;
        if adopted.is_some() {
            failpoint("store.adopt");
        }
        Ok(adopted)
    }

    pub(crate) async fn adopt_for_recovery(
        &self,
        run: &RunId,
        expected_token: u64,
        new_owner: &Owner,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let (run, new_owner) = (run.clone(), new_owner.clone());
        let adopted = self
            .write(move |transaction| {
                let claimed = optional(
                    transaction,
                    "UPDATE runs SET state = ?5, token = token + 1, lease_node = ?2, \
                     lease_expires_at_ms = ?3, updated_at = ?4, lease_place = ?8 \
                     WHERE id = ?1 AND state = ?6 AND token = ?7 RETURNING id, request, attempts, token",
                    params![
                        run.as_str(),
                        new_owner.node.as_str(),
                        int(now_ms.saturating_add(lease_ms)),
                        int(now_ms),
                        adopted_state().as_str(),
                        RunState::Running.as_str(),
                        int(expected_token),
                        new_owner.place.as_str(),
                    ],
                    |row| read_claimed(row, &new_owner.node),
                )?;
                let Some(claimed) = claimed else { return Ok(None) };
                record(transaction, &claimed, &new_owner.node, now_ms)?;
                Ok(Some(claimed))
            })
            .await?;
        if adopted.is_some() {
            failpoint("store.adopt_for_recovery");
        }
        Ok(adopted)
    }
}

fn record(transaction: &Connection, claimed: &Claimed, node: &NodeId, now_ms: u64) -> Result<(), Error> {
    let number = claimed.attempt.number;
    let event = NewEvent::new(now_ms, EventType::RunAdopted, json!({ "node": node, "attempt": number }));
    number_and_insert(transaction, &claimed.attempt.run, Some(number), &[event])?;
    Ok(())
}
