//! Random bits for names and keys.

use rustix::rand::{GetRandomFlags, getrandom};

/// Fills it with random bytes of the kernel.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // Blocks until the kernel has seeded itself, once after the machine's start; it fails in no other way.
        let more = getrandom(&mut bytes[filled..], GetRandomFlags::empty());
        filled += more.expect("the kernel gives random bytes to whoever asks");
    }
    bytes
}

/// Random bits for a new id.
#[must_use]
pub fn random_bits() -> u128 {
    u128::from_ne_bytes(random())
}
