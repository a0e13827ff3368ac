//! The short form of the fuzzers: every seed, and a fixed number of inputs made of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cofferdam_fuzz::mutate::Mutator;
use cofferdam_fuzz::{TARGETS, Target};

/// Inputs of each target.
const INPUTS: usize = 300;

fn hold(name: &str) {
    let target = Target::named(name).unwrap_or_else(|| panic!("there is no target {name}"));
    let mut mutator = Mutator::of(&target, 1).expect("a target has seeds and words");
    assert!(!mutator.seeds().is_empty());
    for seed in mutator.seeds().to_vec() {
        feed(&target, &seed);
    }
    for _ in 0..INPUTS {
        let input = mutator.next_input();
        feed(&target, &input);
    }
}

fn feed(target: &Target, input: &[u8]) {
    let fed = catch_unwind(AssertUnwindSafe(|| (target.feed)(input)));
    if let Err(panic) = fed {
        eprintln!("{} does not hold for {:?}", target.name, String::from_utf8_lossy(input));
        std::panic::resume_unwind(panic);
    }
}

macro_rules! hold {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            hold(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_test() {
            assert_eq!([$(stringify!($name)),*], TARGETS.map(|target| target.name));
        }
    };
}

hold! {
    host_parser broker_head model_request meter git_push worker_protocol claude_code codex opencode redactor
    container_values
}
