//! Hands an attempt that is under way to a new owner. No new attempt is counted.

use cofferdam_core::{EventType, NewEvent, NodeId, RunId, RunState};
use serde_json::json;
use sqlx::postgres::PgRow;

use super::append::number_and_insert;
use super::claim::read_claimed;
use super::session::Session;
use super::{Postgres, int};
use crate::claim_rules::Owner;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::fence::adopted_state;
use crate::lease::Claimed;

impl Postgres {
    pub(crate) async fn adopt(
        &self,
        node: &NodeId,
        run: &RunId,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<Claimed>, Error> {
        let adopted = self
            .write(|mut session| async move {
                let row = session
                    .query(
                        "UPDATE runs SET state = $5, token = token + 1, lease_expires_at_ms = $3, updated_at = $4 \
                         WHERE id = $1 AND state = $6 AND lease_node = $2 RETURNING id, request, attempts, token",
                    )
                    .bind(run.as_str())
                    .bind(node.as_str())
                    .bind(int(now_ms.saturating_add(lease_ms)))
                    .bind(int(now_ms))
                    .bind(adopted_state().as_str())
                    .bind(RunState::Running.as_str())
                    .fetch_optional(session.connection())
                    .await?;
                let adopted = record(&mut session, row.as_ref(), node, now_ms).await?;
                session.done(adopted)
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
        let adopted = self
            .write(|mut session| async move {
                let row = session
                    .query(
                        "UPDATE runs SET state = $5, token = token + 1, lease_node = $2, lease_expires_at_ms = $3, \
                         updated_at = $4, lease_place = $8 \
                         WHERE id = $1 AND state = $6 AND token = $7 RETURNING id, request, attempts, token",
                    )
                    .bind(run.as_str())
                    .bind(new_owner.node.as_str())
                    .bind(int(now_ms.saturating_add(lease_ms)))
                    .bind(int(now_ms))
                    .bind(adopted_state().as_str())
                    .bind(RunState::Running.as_str())
                    .bind(int(expected_token))
                    .bind(new_owner.place.as_str())
                    .fetch_optional(session.connection())
                    .await?;
                let adopted = record(&mut session, row.as_ref(), &new_owner.node, now_ms).await?;
                session.done(adopted)
            })
            .await?;
        if adopted.is_some() {
            failpoint("store.adopt_for_recovery");
        }
        Ok(adopted)
    }
}

async fn record(
    session: &mut Session,
    row: Option<&PgRow>,
    node: &NodeId,
    now_ms: u64,
) -> Result<Option<Claimed>, Error> {
    let Some(row) = row else { return Ok(None) };
    let claimed = read_claimed(row, node)?;
    let number = claimed.attempt.number;
    let event = NewEvent::new(now_ms, EventType::RunAdopted, json!({ "node": node, "attempt": number }));
    number_and_insert(session, &claimed.attempt.run, Some(number), &[&event]).await?;
    Ok(Some(claimed))
}
