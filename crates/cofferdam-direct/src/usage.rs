//! What answers cost, in the vendor's own counts.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens, and the vendor's tools. What is charged is counted by the broker; this is what the answers say of
/// themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read, and neither read from nor written to a cache.
    pub input_tokens: u64,
    /// Written, with what was thought.
    pub output_tokens: u64,
    /// Read from a cache.
    pub cache_read_input_tokens: u64,
    /// Written to a cache.
    pub cache_creation_input_tokens: u64,
    /// Searches of the web that the vendor made.
    pub web_search_requests: u64,
}

impl Usage {
    /// Whether nothing was spent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let sums = [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_input_tokens, other.cache_read_input_tokens),
            (&mut self.cache_creation_input_tokens, other.cache_creation_input_tokens),
            (&mut self.web_search_requests, other.web_search_requests),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }
}
