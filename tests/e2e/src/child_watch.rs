//! Which children a process has, as far as looking often shows it.
//!
//! It samples: a child that comes and goes between two looks is not seen. That holds at every moment because nothing that the API is
//! made of can start a process, which `crates/cofferdam/tests/edges.rs` looks for in its sources. Here it is seen in the process that
//! runs: nothing with work to do (a CLI, a doctor, a sandbox) is ever a child.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::processes::{arguments, children_of};

/// A look every few milliseconds: nothing that does any work is over sooner.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Looks at the children of a process until it is asked what it saw.
pub struct ChildWatch {
    is_over: Arc<AtomicBool>,
    looking: JoinHandle<BTreeSet<String>>,
}

impl ChildWatch {
    /// Begins to look.
    #[must_use]
    pub fn of(parent: u32) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let until = Arc::clone(&is_over);
        let looking = std::thread::spawn(move || {
            let own = arguments(parent);
            let mut seen = BTreeSet::new();
            while !until.load(Ordering::SeqCst) {
                for child in children_of(parent) {
                    let words = arguments(child);
                    // One that was forked has its parent's until it has become what it is to be; one that ended has none.
                    if words != own && !words.is_empty() {
                        seen.insert(words.into_iter().nth(1).unwrap_or_default());
                    }
                }
                std::thread::sleep(LOOK_EVERY);
            }
            seen
        });
        Self { is_over, looking }
    }

    /// The first argument of each child that was there: the role of our own processes.
    ///
    /// # Panics
    /// If the look failed.
    #[must_use]
    pub fn seen(self) -> BTreeSet<String> {
        self.is_over.store(true, Ordering::SeqCst);
        self.looking.join().expect("nobody panics while looking")
    }
}
