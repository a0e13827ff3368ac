//! Tools that the vendor runs: which of them an attempt may use, how often a request may, and what that costs.

use cofferdam_core::VendorTool;

/// What a search costs, by the vendors' public lists of 2026-09: $10 for a thousand at both.
pub(super) const SEARCH_MICRO_USD: u64 = 10_000;
/// What the older tool (`web_search_preview`) and the models that search by themselves cost: $25 for a thousand.
pub(super) const OLDER_SEARCH_MICRO_USD: u64 = 25_000;
/// How often they may be used where the request does not say and can be told.
pub(super) const MOST_CALLS: u64 = 10;
/// What is set aside for the input that each use brings. There is no bound to it but the model's context, many times over; what
/// it really was counts when the vendor tells.
const BROUGHT_IN: u64 = 20_000;

/// Which tools an attempt may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    search: bool,
    fetch: bool,
}

impl Allowed {
    pub(crate) fn of(tools: &[VendorTool]) -> Self {
        Self { search: tools.contains(&VendorTool::WebSearch), fetch: tools.contains(&VendorTool::WebFetch) }
    }

    pub(crate) fn has(self, tool: VendorTool) -> bool {
        match tool {
            VendorTool::WebSearch => self.search,
            VendorTool::WebFetch => self.fetch,
        }
    }
}

/// What a request offers to its model of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// How often the web may be searched.
    pub(crate) searches: u64,
    /// How often pages may be fetched, which costs nothing but the tokens.
    pub(crate) fetches: u64,
    /// What one search costs.
    pub(crate) search_micro_usd: u64,
    /// Searches that every answer makes, and that no vendor counts.
    pub(crate) certain_searches: u64,
    /// Whether the request does not say how often.
    pub(crate) is_unbounded: bool,
}

impl Offer {
    /// One tool that may be used so often.
    pub(crate) fn new(tool: VendorTool, uses: Option<u64>) -> Self {
        let (count, is_unbounded) = (uses.unwrap_or(MOST_CALLS), uses.is_none());
        match tool {
            VendorTool::WebSearch => {
                Self { searches: count, search_micro_usd: SEARCH_MICRO_USD, is_unbounded, ..Self::default() }
            }
            VendorTool::WebFetch => Self { fetches: count, is_unbounded, ..Self::default() },
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.searches = self.searches.saturating_add(other.searches);
        self.fetches = self.fetches.saturating_add(other.fetches);
        self.search_micro_usd = self.search_micro_usd.max(other.search_micro_usd);
        self.certain_searches = self.certain_searches.saturating_add(other.certain_searches);
        self.is_unbounded |= other.is_unbounded;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.searches == 0 && self.fetches == 0
    }

    /// The tokens that are set aside for what they bring.
    pub(crate) fn tokens(&self) -> u64 {
        self.searches.saturating_add(self.fetches).saturating_mul(BROUGHT_IN)
    }

    /// All the fees that there can be.
    pub(crate) fn fees_micro_usd(&self) -> u64 {
        self.searches.saturating_mul(self.search_micro_usd)
    }
}
