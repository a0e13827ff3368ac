//! Questions to nodes and their answers. They are of interest for seconds: none of it need survive a power cut.

use cofferdam_core::{NodeId, NodeRequestId};
use cofferdam_mandate::Mandate;
use serde_json::Value as Json;

use super::{Store, audit};
use crate::error::Error;
use crate::node_request::{AskedRequest, NewNodeRequest, NodeRequest, RequestState};
use crate::session::{Row, values};
use crate::stored::{parse, to_json};

/// How long an answer is good for that is shared.
const SHARED_FOR_MS: u64 = 60_000;

const IS_FOR_NODE: &str = "SELECT EXISTS (SELECT 1 FROM node_requests WHERE taken_by IS NULL AND deadline > ?2 \
     AND (node = ?1 OR node IS NULL))";

/// Whoever waits for a row that another node took just now looks at it again, and leaves it.
const TAKE: &str = "UPDATE node_requests SET taken_by = ?1 WHERE taken_by IS NULL AND id IN \
     (SELECT id FROM node_requests WHERE taken_by IS NULL AND deadline > ?2 AND (node = ?1 OR node IS NULL) \
     ORDER BY id LIMIT ?3) RETURNING id, task, deadline";

impl Store {
    /// Puts a question to a node on record, unless an equal one is there whose answer is shared. `costs` is the entry of the
    /// audit for a question that costs something when it is asked.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn ask_node(
        &self,
        request: &NewNodeRequest,
        costs: Option<&Mandate>,
        now_ms: u64,
    ) -> Result<AskedRequest, Error> {
        let (request, costs) = (request.clone(), costs.cloned());
        self.write(async move |session| {
            session.may_repeat();
            session.execute("DELETE FROM node_requests WHERE gone_at <= ?1", values![now_ms]).await?;
            let NewNodeRequest { id, node, task, share, deadline_ms } = &request;
            let added = session
                .execute(
                    "INSERT INTO node_requests (id, node, task, share, deadline, gone_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT DO NOTHING",
                    values![id.as_str(), node.as_ref(), to_json(task), share.as_deref(), *deadline_ms],
                )
                .await?;
            if added > 0 {
                if let Some(mandate) = &costs {
                    audit::record(session, mandate).await?;
                }
                return Ok(AskedRequest { id: id.clone(), is_new: true });
            }
            let sql = "SELECT id FROM node_requests WHERE share = ?1 OR id = ?2";
            let read = |row: Row<'_>| row.parse(id.as_str(), "request", "id");
            let id = session.one(sql, values![share.as_deref(), id.as_str()], read).await?;
            Ok(AskedRequest { id, is_new: false })
        })
        .await
    }

    /// Gives a node the questions that are for it, at most so many, and to nobody else again.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn take_node_requests(
        &self,
        node: &NodeId,
        now_ms: u64,
        most: u32,
    ) -> Result<Vec<NodeRequest>, Error> {
        let own = node.clone();
        let is_there = self
            .read(async move |session| {
                session.one(IS_FOR_NODE, values![&own, now_ms], |row| row.first::<bool>()).await
            })
            .await?;
        if !is_there || most == 0 {
            return Ok(Vec::new());
        }
        let node = node.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            session.all(TAKE, values![&node, now_ms, most], read_request).await
        })
        .await
    }

    /// Answers a question. False if nobody waits for it any more.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn answer_node_request(
        &self,
        id: &NodeRequestId,
        answer: &Json,
        now_ms: u64,
    ) -> Result<bool, Error> {
        let (id, answer) = (id.clone(), to_json(answer));
        let answered = self
            .write_ledger(async move |session| {
                session.may_repeat();
                session
                    .execute(
                        "UPDATE node_requests SET answer = ?1, \
                         gone_at = CASE WHEN share IS NULL THEN gone_at ELSE ?2 END \
                         WHERE id = ?3 AND answer IS NULL AND gone_at > ?4",
                        values![&answer, now_ms + SHARED_FOR_MS, id.as_str(), now_ms],
                    )
                    .await
            })
            .await?;
        Ok(answered > 0)
    }

    /// Where a question stands. An answer that is not shared is gone once it was read.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn node_answer(&self, id: &NodeRequestId) -> Result<RequestState, Error> {
        const SQL: &str = "SELECT answer, share IS NOT NULL AS is_shared FROM node_requests WHERE id = ?1";
        let asked = id.clone();
        let read =
            |row: Row<'_>| Ok((row.json_some("a node", "answer", "answer")?, row.get::<bool>("is_shared")?));
        let found = self
            .read(async move |session| session.optional(SQL, values![asked.as_str()], read).await)
            .await?;
        Ok(match found {
            None => RequestState::Gone,
            Some((None, _)) => RequestState::Open,
            Some((Some(answer), is_shared)) => {
                if !is_shared {
                    self.forget_node_request(id).await?;
                }
                RequestState::Answered(answer)
            }
        })
    }

    /// Forgets a question that nobody waits for.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn forget_node_request(&self, id: &NodeRequestId) -> Result<(), Error> {
        let id = id.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            session.execute("DELETE FROM node_requests WHERE id = ?1", values![id.as_str()]).await
        })
        .await?;
        Ok(())
    }
}

fn read_request(row: Row<'_>) -> Result<NodeRequest, Error> {
    let id: String = row.get("id")?;
    Ok(NodeRequest {
        id: parse(&id, "request", &id)?,
        task: row.json(&id, "question to a node", "task")?,
        deadline_ms: row.get("deadline")?,
    })
}
