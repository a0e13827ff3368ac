//! What a call used, and what that costs.

use cofferdam_core::{Spent, Vendor};

use crate::options::Price;

/// Tokens of one call. The counts do not overlap: `input` is what was neither read from nor written to the
/// cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input at the full price.
    pub input: u64,
    /// Output, thinking included.
    pub output: u64,
    /// Input that the vendor had kept.
    pub cache_read: u64,
    /// Input that the vendor keeps for some minutes.
    pub cache_write: u64,
    /// Input that the vendor keeps for an hour; dearer.
    pub cache_write_hour: u64,
    /// Searches of the web by the vendor, each of which has its price.
    pub web_searches: u64,
    /// Pages that the vendor fetched, which cost nothing but their tokens.
    pub web_fetches: u64,
}

/// What keeping input for an hour costs, as a multiple of the usual input. Anthropic's rule for all models.
const HOUR_FACTOR: f64 = 2.0;

impl Usage {
    /// Input and output together.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write, self.cache_write_hour]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// All input, wherever it came from.
    fn all_input(&self) -> u64 {
        self.tokens().saturating_sub(self.output)
    }

    /// What one call with this usage adds to what a run has spent.
    pub(crate) fn spent(&self, price: Option<&Price>, search_micro_usd: u64) -> Spent {
        let fees = self.web_searches.saturating_mul(search_micro_usd);
        let cost_micro_usd = price.map_or(0, |price| self.cost_micro_usd(price).saturating_add(fees));
        Spent { cost_micro_usd, tokens: self.tokens(), calls: 1 }
    }

    /// Dollars per million tokens are millionths of a dollar per token. Rounded up, so that many small calls
    /// are not free.
    pub(crate) fn cost_micro_usd(&self, price: &Price) -> u64 {
        let price = price.at(self.all_input());
        let parts = [
            (self.input, price.input),
            (self.output, price.output),
            (self.cache_read, price.cache_read),
            (self.cache_write, price.cache_write),
            (self.cache_write_hour, price.cache_write.max(price.input * HOUR_FACTOR)),
        ];
        parts.into_iter().map(|(tokens, each)| tokens as f64 * each).sum::<f64>().ceil() as u64
    }
}

/// The dearest that one input token can be; what is reserved, since nobody knows yet what the cache holds, and an agent may ask
/// Anthropic to keep all of it for an hour.
pub(crate) fn dearest_input(price: &Price, vendor: Vendor) -> f64 {
    let dearest = price.input.max(price.cache_write);
    match vendor {
        Vendor::Anthropic => dearest.max(price.input * HOUR_FACTOR),
        Vendor::Openai => dearest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price =
        Price { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75, long_from: None };

    #[test]
    fn a_million_of_each_costs_what_the_table_says() {
        let million = 1_000_000;
        let usage = Usage {
            input: million,
            output: million,
            cache_read: million,
            cache_write: million,
            cache_write_hour: million,
            ..Usage::default()
        };
        assert_eq!(usage.cost_micro_usd(&PRICE), 28_050_000);
        assert_eq!(usage.tokens(), 5 * million);
    }

    #[test]
    fn a_long_input_costs_twice_as_much_and_its_answer_half_as_much_again() {
        let price = Price { long_from: Some(200_000), ..PRICE };
        let usage = |cache_read| Usage { input: 100_000, cache_read, output: 1_000, ..Usage::default() };
        assert_eq!(usage(100_000).cost_micro_usd(&price), 300_000 + 30_000 + 15_000);
        assert_eq!(usage(100_001).cost_micro_usd(&price), 600_000 + 60_001 + 22_500);
    }
}
