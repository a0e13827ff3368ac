//! Placeholder until the crate is written.

/// Stand-in.
#[must_use]
pub fn landlock_abi() -> u32 {
    7
}
