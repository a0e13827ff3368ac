//! The control: without a sandbox every attack succeeds, and each wall alone is what stops its own.
//!
//! If an attempt failed on a bare host, "it was stopped in the sandbox" would prove nothing. It needs root,
//! since much of what is attacked belongs to root; elsewhere it is skipped, visibly.

#![expect(clippy::unwrap_used, reason = "clippy knows tests by the attribute of the ordinary harness")]

mod bare;
mod fixture;
mod walled;

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("without_a_sandbox_every_attempt_succeeds", bare::every_attempt_succeeds),
    ("without_a_sandbox_every_way_to_change_a_workspace_works", bare::every_way_to_change_a_workspace_works),
    ("without_a_sandbox_every_behaviour_has_its_way", bare::every_behaviour_has_its_way),
    ("the_walls_of_a_process_stop_what_is_theirs", walled::the_walls_stop_what_is_theirs),
    ("without_seccomp_its_attempts_are_not_taken_for_stopped", walled::without_seccomp),
    ("without_landlock_its_attempts_are_not_taken_for_stopped", walled::without_landlock),
    ("without_limits_its_attempts_are_not_taken_for_stopped", walled::without_limits),
    ("without_namespaces_and_mounts_their_attempts_are_not_taken_for_stopped", walled::without_namespaces),
    ("without_another_user_its_attempts_are_not_taken_for_stopped", walled::without_another_user),
];

/// Speaks as much of the ordinary harness's command line as cargo and nextest use.
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let filter = args.iter().find(|arg| !arg.starts_with('-') && *arg != "terse");
    let chosen = TESTS
        .iter()
        .filter(|(name, _)| filter.is_none_or(|f| if has("--exact") { name == f } else { name.contains(f) }));
    if has("--list") {
        chosen.filter(|_| !has("--ignored")).for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: the control of the attack suite needs root");
        return;
    }
    for (name, test) in chosen {
        test();
        println!("test {name} ... ok");
    }
}
