//! This machine, as far as names of packages depend on it.

use std::env::consts::ARCH;

use cofferdam_agent::Machine;

/// This machine.
pub(super) fn this_machine() -> Machine {
    let (node_arch, triple) = match ARCH {
        "aarch64" => ("arm64", "aarch64-unknown-linux-musl"),
        "x86_64" => ("x64", "x86_64-unknown-linux-musl"),
        other => (other, "x86_64-unknown-linux-musl"),
    };
    Machine { node_arch, triple, has_avx2: has_avx2() }
}

fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    true
}
