//! `GET /api/v1/nodes`.

use axum::Json;
use cofferdam_api::NodeList;

use crate::access::By;
use crate::app::now_ms;
use crate::errors::Answer;
use crate::wire;

/// The nodes that execute runs, as they last told of themselves.
#[utoipa::path(get, path = "/api/v1/nodes", tag = "nodes", responses(
    (status = 200, description = "The nodes.", body = NodeList),
))]
pub(crate) async fn list_nodes(By(actor, app): By) -> Answer<NodeList> {
    let now_ms = now_ms();
    let nodes = app.operations().list_nodes(&actor).await?;
    Ok(Json(NodeList { nodes: nodes.into_iter().map(|node| wire::node(node, now_ms)).collect() }))
}
