//! How long a queued run keeps its place in the line for a slot.

/// How long a queued run keeps its place in the line after somebody last tried to claim it. One whose process was
/// stopped, or that no dispatcher asks for, must not hold up the others.
pub(crate) const KEEPS_PLACE_MS: u64 = 10_000;
/// How often the place is renewed: each time is a write to the disk.
pub(crate) const RENEW_PLACE_MS: u64 = 2_000;
