//! The forward proxy. A target is parsed once; the same value is looked up in the rules, resolved and dialled.

mod connect;
mod headers;
mod plain;

use cofferdam_core::HostPort;
use cofferdam_net::AddressCheck;
use tokio::net::TcpStream;

use crate::recorder::Kind;
use crate::refusal::Refusal;
use crate::rules::list;
use crate::served::Served;

pub(crate) use connect::connect;
pub(crate) use headers::strip_hop_by_hop;
pub(crate) use plain::plain;

/// Decides about a target and connects to it. Either is written down.
async fn reach(serving: &Served, kind: Kind, target: &HostPort) -> Result<TcpStream, Refusal> {
    let outcome = decide_and_dial(serving, target).await;
    match &outcome {
        Ok(stream) => serving.recorder.allowed(kind, &target.to_string(), stream.peer_addr().ok()),
        Err(refusal) => serving.recorder.refused(kind, &target.to_string(), refusal),
    }
    outcome
}

async fn decide_and_dial(serving: &Served, target: &HostPort) -> Result<TcpStream, Refusal> {
    if !serving.proxies {
        return Err(Refusal::forbidden("this run has a network of its own and no proxy"));
    }
    let rules = serving.rules.current();
    if !list(&rules, target) {
        return Err(Refusal::unlisted(&serving.attempt, target));
    }
    serving
        .dialer
        .connect(target, &AddressCheck::Listed(rules))
        .await
        .map_err(|error| Refusal::undialled(&serving.attempt, &error))
}
