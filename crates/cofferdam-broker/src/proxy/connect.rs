//! `CONNECT host:port`: a tunnel.

use cofferdam_core::HostPort;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::reach;
use crate::body::{Body, full};
use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::served::{Served, Tunnel};

/// Opens a tunnel. Its Host header is not looked at and goes nowhere.
pub(crate) async fn connect(
    serving: &Served,
    request: &Request<Incoming>,
    tunnel: &Tunnel,
) -> Response<Body> {
    let text = request.uri().to_string();
    let target: HostPort = match text.parse() {
        Ok(target) => target,
        Err(error) => {
            let refusal = Refusal::malformed(StatusCode::BAD_REQUEST, &format!("{error}"));
            serving.recorder.refused(Kind::Connect, &text, &refusal);
            return refusal.response();
        }
    };
    match reach(serving, Kind::Connect, &target).await {
        Ok(stream) => {
            tunnel.put(stream);
            Response::new(full(""))
        }
        Err(refusal) => refusal.response(),
    }
}
