//! How long a run is its node's, and how long nobody else takes it after that.

/// How long a lease is valid.
pub(crate) const LEASE_MS: u64 = 30_000;
/// How long a node waits beyond a lease's end before it takes the run of a node that it cannot see. After an outage of the
/// database everybody else deserves the chance to renew first, so that the node itself has had contact for as long.
pub(crate) const GRACE_MS: u64 = 30_000;
