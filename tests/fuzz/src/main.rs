//! The driver that is guided by coverage: libFuzzer, told by `COFFERDAM_FUZZ` which target to feed.
#![no_main]

use std::sync::LazyLock;

use cofferdam_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("COFFERDAM_FUZZ").unwrap_or_default();
    Target::named(&name).expect("COFFERDAM_FUZZ names a target; `./dev fuzz` sets it")
});

fuzz_target!(|input: &[u8]| (TARGET.feed)(input));
