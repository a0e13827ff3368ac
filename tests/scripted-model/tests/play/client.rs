//! A client that shows everything: status, headers, bytes, and whether the connection was cut.

use bytes::Bytes;
use cofferdam_scripted_model::ScriptedModel;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The connection ended before the body did.
    pub(crate) cut: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a body of JSON")
    }

    /// The data of the events, without the `[DONE]` of Chat Completions.
    pub(crate) fn events(&self) -> Vec<Value> {
        assert!(
            self.headers["content-type"].to_str().is_ok_and(|kind| kind.starts_with("text/event-stream"))
        );
        assert!(self.body.ends_with("\n\n"), "the last event is whole");
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).expect("an event of JSON"))
            .collect()
    }
}

/// Sends a request; nothing if the connection was cut before the headers.
pub(crate) async fn send(model: &ScriptedModel, request: Request<Full<Bytes>>) -> Option<Reply> {
    let connection = TcpStream::connect(model.address()).await.expect("the model listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(connection)).await.expect("a connection");
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.ok()?;
    let (head, mut body) = response.into_parts();
    let (mut bytes, mut cut) = (Vec::new(), false);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend_from_slice(frame.data_ref().expect("no trailers")),
            Err(_) => {
                cut = true;
                break;
            }
        }
    }
    drop(sender);
    driver.abort();
    let body = String::from_utf8(bytes).expect("text");
    Some(Reply { status: head.status, headers: head.headers, body, cut })
}

/// Posts a body of JSON.
pub(crate) async fn post(model: &ScriptedModel, path: &str, body: &Value) -> Option<Reply> {
    let request = Request::post(path).header("host", "model").header("content-type", "application/json");
    let request = request.header("x-api-key", "sk-real");
    send(model, request.body(Full::new(body.to_string().into())).expect("a request")).await
}

/// A request with the tools of a CLI that writes files with `Write` and runs commands with `Bash`.
pub(crate) fn asking(path: &str, stream: bool) -> Value {
    let names = ["Write", "Edit", "Bash"];
    let tools: Vec<Value> = match path {
        "/v1/chat/completions" => {
            names.iter().map(|name| json!({"type": "function", "function": {"name": name}})).collect()
        }
        _ => names.iter().map(|name| json!({"type": "function", "name": name})).collect(),
    };
    let said = json!([{"role": "user", "content": "do it"}]);
    let field = if path == "/v1/responses" { "input" } else { "messages" };
    let options = json!({"include_usage": true});
    json!({"model": "m1", "stream": stream, "stream_options": options, "tools": tools, field: said})
}

/// Posts a request with tools, as a stream.
pub(crate) async fn call(model: &ScriptedModel) -> Option<Reply> {
    post(model, "/v1/messages", &asking("/v1/messages", true)).await
}
