//! Places where the crash tests kill the process: right after each durable write, and between a change and the entry of
//! the audit that is written with it.
//!
//! Without the feature `failpoints` nothing of this is in the binary.

/// The store's failpoints, one for each durable write; `store.audit` is before the end of the transaction.
pub const FAILPOINTS: &[&str] = &[
    "store.add_message",
    "store.adopt",
    "store.adopt_for_recovery",
    "store.allow",
    "store.append",
    "store.approve_phase",
    "store.audit",
    "store.change_config",
    "store.claim",
    "store.claim_for_recovery",
    "store.create_key",
    "store.create_project",
    "store.create_spec",
    "store.enqueue",
    "store.execute_spec",
    "store.expire",
    "store.finish",
    "store.mark_message",
    "store.record_phase",
    "store.record_refusal",
    "store.record_seal",
    "store.record_turns",
    "store.reject_phase",
    "store.remove_letter",
    "store.remove_project",
    "store.remove_run",
    "store.renew",
    "store.request_cancel",
    "store.revoke_key",
    "store.schedule_retry",
    "store.set_desired",
    "store.update_spec",
];

/// Kills this process, as a power cut would, if `COFFERDAM_FAILPOINT` is `name` (the first time it comes
/// here) or `name:N` (the Nth time).
#[cfg(feature = "failpoints")]
pub fn failpoint(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static ARMED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    // Only one name is ever armed, so that one counter is enough.
    static HITS: AtomicU64 = AtomicU64::new(0);

    let armed = ARMED.get_or_init(|| std::env::var("COFFERDAM_FAILPOINT").ok().map(|text| parse(&text)));
    let Some((wanted, nth)) = armed else { return };
    if wanted == name && HITS.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
        let own = rustix::process::getpid();
        // SIGKILL cannot fail for one's own process, and nothing after it may run.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Does nothing: this binary was built without failpoints.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn failpoint(_name: &str) {}

#[cfg(any(feature = "failpoints", test))]
fn parse(text: &str) -> (String, u64) {
    match text.rsplit_once(':').map(|(name, nth)| (name, nth.parse())) {
        Some((name, Ok(nth))) => (name.to_owned(), nth),
        _ => (text.to_owned(), 1),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn collect(folder: &Path, found: &mut Vec<String>) {
        let call = concat!("failpoint", "(\"");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(text.split(call).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }

    #[test]
    fn the_list_names_every_failpoint_once() {
        let mut found = Vec::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store"), &mut found);
        let once: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(once.len(), found.len(), "a name is used twice: {found:?}");
        assert_eq!(once.into_iter().collect::<Vec<_>>(), FAILPOINTS);
    }

    #[test]
    fn a_failpoint_is_armed_for_the_first_or_the_nth_hit() {
        assert_eq!(parse("store.claim"), ("store.claim".to_owned(), 1));
        assert_eq!(parse("store.append:7"), ("store.append".to_owned(), 7));
    }
}
