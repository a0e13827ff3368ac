//! How much memory a sandbox uses, where no control group holds it.

use super::processes::{Process, resident_bytes};
use super::survey::{Budget, Looked, Unfinished};
use super::unnamed::{Found, add_open_memory, add_shared_memory, most_shared_memory};

/// Whether the descendants of `ancestor` use more memory than they may, once that is known.
pub(super) fn look(limit_bytes: u64, ancestor: Option<i32>) -> Looked {
    let Some(ancestor) = ancestor else { return Looked::Within };
    let (mut used, mut budget) = (Used::default(), Budget::of_a_look());
    let finished = used.measure(ancestor, limit_bytes, &mut budget);
    Looked::of(used.bytes(), limit_bytes, finished)
}

/// What was found so far.
#[derive(Default)]
struct Used {
    own_bytes: u64,
    /// What several may have in common.
    common: Found,
}

impl Used {
    fn bytes(&self) -> u64 {
        self.own_bytes.saturating_add(self.common.bytes())
    }

    fn measure(&mut self, ancestor: i32, limit_bytes: u64, budget: &mut Budget) -> Result<(), Unfinished> {
        let processes = Process::below(ancestor, budget)?;
        self.own_bytes = resident_bytes(&processes, budget)?;
        add_open_memory(&processes, &mut self.common, budget)?;
        let most = most_shared_memory(&processes, budget)?;
        // What is within the limit even if nothing is in common need not be looked at mapping by mapping.
        if self.bytes().saturating_add(most) <= limit_bytes {
            return Ok(());
        }
        add_shared_memory(&processes, &mut self.common, budget)
    }
}
