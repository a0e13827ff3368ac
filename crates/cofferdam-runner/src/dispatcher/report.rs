//! What a node tells of itself.

use cofferdam_store::{ModeReport, NodeHealth, NodeRecord, NodeReport};

use super::breaker::Breaker;
use super::modes::Modes;
use super::{DispatcherOptions, Stop};
use crate::node::Node;

/// What a node tells of itself now.
pub(super) struct Now<'a> {
    pub(super) stop: Stop,
    pub(super) running: usize,
    pub(super) breaker: &'a Breaker,
    pub(super) modes: &'a Modes,
    pub(super) started_at_ms: u64,
    pub(super) now_ms: u64,
}

/// The node's record.
pub(super) fn record(node: &Node, options: &DispatcherOptions, now: &Now<'_>) -> NodeRecord {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    NodeRecord {
        id: node.id.clone(),
        place: node.place.clone(),
        started_at_ms: now.started_at_ms,
        seen_at_ms: now.now_ms,
        report: NodeReport {
            name: options.name.clone(),
            host: options.host.clone(),
            version: options.version.clone(),
            roles: node.rules.roles.clone(),
            capacity: count(options.capacity),
            running: count(now.running),
            health: health(now),
            modes: modes(now),
        },
    }
}

fn health(now: &Now<'_>) -> NodeHealth {
    match (now.stop, now.breaker.rests().next()) {
        (Stop::Drain | Stop::Now, _) => NodeHealth::Draining,
        (Stop::No, Some(rest)) => NodeHealth::Resting {
            reason: format!("sandboxes of mode {} could not be made: {}", rest.mode, rest.reason),
            until_ms: rest.until_ms,
        },
        (Stop::No, None) => NodeHealth::Ready,
    }
}

fn modes(now: &Now<'_>) -> Vec<ModeReport> {
    let mut reports = now.modes.reports();
    for rest in now.breaker.rests() {
        let resting = reports.iter_mut().find(|report| report.mode == rest.mode && report.missing.is_none());
        if let Some(report) = resting {
            report.missing = Some(format!("it failed several times in a row: {}", rest.reason));
        }
    }
    reports
}
