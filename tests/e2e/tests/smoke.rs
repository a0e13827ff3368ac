//! The smallest whole thing.

use cofferdam_e2e::Fixture;
use cofferdam_test_marks::limits;

#[limits]
#[test]
fn a_program_runs_sealed_and_its_changes_come_back_as_a_diff() {
    let fixture = Fixture::new();
    let finished = fixture.run(&[], "echo more >> README.md; echo done");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
}
