//! What the models cost where the settings say nothing else.

use crate::options::{Price, PriceTable};

/// When the list below was last brought up to date.
const AS_OF: &str = "2026-09-22";

/// Name, then dollars per million tokens: input, output, read from the cache, written to the cache.
const PRICES: [(&str, f64, f64, f64, f64); 58] = [
    ("claude-opus-4", 5.0, 25.0, 0.5, 6.25),
    ("claude-opus-4-0", 15.0, 75.0, 1.5, 18.75),
    ("claude-opus-4-1", 15.0, 75.0, 1.5, 18.75),
    ("claude-opus-4-20250514", 15.0, 75.0, 1.5, 18.75),
    ("claude-sonnet-4", 3.0, 15.0, 0.3, 3.75),
    ("claude-haiku-4", 1.0, 5.0, 0.1, 1.25),
    ("claude-3-7-sonnet", 3.0, 15.0, 0.3, 3.75),
    ("claude-3-5-sonnet", 3.0, 15.0, 0.3, 3.75),
    ("claude-3-5-haiku", 0.8, 4.0, 0.08, 1.0),
    ("claude-3-opus", 15.0, 75.0, 1.5, 18.75),
    ("claude-3-haiku", 0.25, 1.25, 0.03, 0.3),
    ("gpt-5", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5-mini", 0.25, 2.0, 0.025, 0.25),
    ("gpt-5-nano", 0.05, 0.4, 0.005, 0.05),
    ("gpt-5-pro", 15.0, 120.0, 15.0, 15.0),
    ("gpt-5-codex", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5-codex-mini", 0.25, 2.0, 0.025, 0.25),
    ("gpt-5.1", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5.1-codex", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5.1-codex-max", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5.1-codex-mini", 0.25, 2.0, 0.025, 0.25),
    ("gpt-5.2", 1.75, 14.0, 0.175, 1.75),
    ("gpt-5.2-codex", 1.75, 14.0, 0.175, 1.75),
    ("gpt-5.2-pro", 21.0, 168.0, 21.0, 21.0),
    ("gpt-5.3-codex", 1.75, 14.0, 0.175, 1.75),
    ("gpt-4.1", 2.0, 8.0, 0.5, 2.0),
    ("gpt-4.1-mini", 0.4, 1.6, 0.1, 0.4),
    ("gpt-4.1-nano", 0.1, 0.4, 0.025, 0.1),
    ("gpt-4o", 2.5, 10.0, 1.25, 2.5),
    ("gpt-4o-2024-05-13", 5.0, 15.0, 5.0, 5.0),
    ("gpt-4o-mini", 0.15, 0.6, 0.075, 0.15),
    ("o1", 15.0, 60.0, 7.5, 15.0),
    ("o1-pro", 150.0, 600.0, 150.0, 150.0),
    ("o3", 2.0, 8.0, 0.5, 2.0),
    ("o3-deep-research", 10.0, 40.0, 2.5, 10.0),
    ("o3-mini", 1.1, 4.4, 0.55, 1.1),
    ("o3-pro", 20.0, 80.0, 20.0, 20.0),
    ("o4-mini", 1.1, 4.4, 0.275, 1.1),
    ("o4-mini-deep-research", 2.0, 8.0, 0.5, 2.0),
    ("codex-mini-latest", 1.5, 6.0, 0.375, 1.5),
    ("gpt-4-turbo", 10.0, 30.0, 10.0, 10.0),
    ("claude-sonnet-5", 2.0, 10.0, 0.2, 2.5),
    ("claude-fable-5", 10.0, 50.0, 1.0, 12.5),
    ("claude-fable-5-1", 10.0, 50.0, 0.25, 12.5),
    ("gpt-5.4-nano", 0.2, 1.25, 0.02, 0.2),
    ("gpt-5.4-pro", 30.0, 180.0, 30.0, 30.0),
    ("gpt-5.5-pro", 30.0, 180.0, 30.0, 30.0),
    ("claude-opus-5", 5.0, 25.0, 0.5, 6.25),
    ("claude-opus-5-5", 4.0, 20.0, 0.2, 5.0),
    ("gpt-5.4", 2.5, 15.0, 0.25, 2.5),
    ("gpt-5.4-mini", 0.75, 4.5, 0.075, 0.75),
    ("gpt-5.5", 5.0, 30.0, 0.5, 5.0),
    ("gpt-5.6-luna", 0.2, 1.2, 0.02, 0.25),
    ("gpt-5.6-sol", 5.0, 30.0, 0.5, 6.25),
    ("gpt-5.6-terra", 2.5, 15.0, 0.25, 3.125),
    ("gpt-6-astra", 10.0, 50.0, 1.0, 12.5),
    ("gpt-6-luna", 0.1, 0.5, 0.01, 0.125),
    ("gpt-6-sol", 2.0, 10.0, 0.2, 2.5),
];

/// Families with a dearer rate for long inputs, and from where on. Anthropic's is for a context of a million tokens, which an
/// agent asks for with a beta; OpenAI's holds for every call. A newer member may have none: then too much is
/// reserved and charged, never too little.
const LONG_FROM: [(&str, u64); 5] = [
    ("claude-sonnet-4", 200_000),
    ("gpt-5.4", 272_000),
    ("gpt-5.5", 272_000),
    ("gpt-5.6", 272_000),
    ("gpt-6", 272_000),
];

/// From how many input tokens on a model costs more, if that is known of it.
#[must_use]
pub fn long_from(model: &str) -> Option<u64> {
    LONG_FROM.into_iter().find(|(family, _)| model.starts_with(family)).map(|(_, from)| from)
}

impl PriceTable {
    /// The vendors' public list prices as they were known at `as_of`, without anybody's discount. They are
    /// written by hand and not fetched: a vendor may have changed them since. A newer member of a listed
    /// family (`claude-opus-4-9`) is taken to cost what the family costs. Not in here: regional surcharges, and
    /// service tiers (which the broker does not let agents choose).
    #[must_use]
    pub fn default_prices() -> Self {
        let price = |(name, input, output, cache_read, cache_write): (&str, f64, f64, f64, f64)| {
            (name.to_owned(), Price { input, output, cache_read, cache_write, long_from: long_from(name) })
        };
        Self { as_of: AS_OF.to_owned(), models: PRICES.into_iter().map(price).collect() }
    }

    /// The price of a model: that of the longest name in the table that its own name begins with, and that
    /// ends there between two parts. So `gpt-5` prices `gpt-5-2025-08-07`, and not `gpt-5.2`.
    #[must_use]
    pub fn find(&self, model: &str) -> Option<&Price> {
        let begins = |name: &str| {
            let rest = model.strip_prefix(name)?;
            let inside = |c: char| c.is_ascii_alphanumeric() || c == '.';
            let joined = name.ends_with(inside) && rest.starts_with(inside);
            (!joined).then_some(name.len())
        };
        self.models
            .iter()
            .filter_map(|(name, price)| Some((begins(name)?, price)))
            .max_by_key(|(length, _)| *length)
            .map(|(_, price)| price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(model: &str) -> Option<f64> {
        PriceTable::default_prices().find(model).map(|price| price.input)
    }

    #[test]
    fn the_longest_name_wins_and_names_end_between_parts() {
        assert_eq!(input("gpt-5-2025-08-07"), Some(1.25));
        assert_eq!(input("gpt-5-mini-2025-08-07"), Some(0.25));
        assert_eq!(input("gpt-5.2"), Some(1.75));
        assert_eq!(input("gpt-5.9"), None);
        assert_eq!(input("gpt-4o"), Some(2.5));
        assert_eq!(input("gpt-4o1"), None);
        assert_eq!(input("claude-opus-4-1-20250805"), Some(15.0));
        assert_eq!(input("claude-opus-4-8"), Some(5.0));
        assert_eq!(input("m1"), None);
    }

    /// The attack: a budget of a dear model's calls, charged as the family's usual member is.
    #[test]
    fn a_dearer_member_of_a_family_has_a_price_of_its_own() {
        let price = |model: &str| {
            PriceTable::default_prices().find(model).map(|it| (it.input, it.output, it.cache_read))
        };
        for model in ["o3-deep-research", "o3-deep-research-2025-06-26"] {
            assert_eq!(price(model), Some((10.0, 40.0, 2.5)), "{model}");
        }
        for model in ["o4-mini-deep-research", "o4-mini-deep-research-2025-06-26"] {
            assert_eq!(price(model), Some((2.0, 8.0, 0.5)), "{model}");
        }
        // It knows no cache.
        assert_eq!(price("gpt-4o-2024-05-13"), Some((5.0, 15.0, 5.0)));
        assert_eq!(price("o3-2025-04-16"), Some((2.0, 8.0, 0.5)));
        assert_eq!(price("gpt-4o-2024-08-06"), Some((2.5, 10.0, 1.25)));
    }

    #[test]
    fn long_inputs_have_a_rate_of_their_own_where_a_vendor_has_one() {
        let from = |model: &str| PriceTable::default_prices().find(model).and_then(|price| price.long_from);
        assert_eq!(from("claude-sonnet-4-5-20250929"), Some(200_000));
        assert_eq!((from("gpt-5.4-pro"), from("gpt-6-sol")), (Some(272_000), Some(272_000)));
        assert_eq!((from("claude-opus-4-8"), from("gpt-5")), (None, None));
    }

    #[test]
    fn the_cache_is_never_dearer_to_read_than_the_input_itself() {
        for (name, price) in PriceTable::default_prices().models {
            assert!(price.cache_read <= price.input && price.input <= price.cache_write * 1.01, "{name}");
            assert!(price.output > price.input, "{name}");
        }
    }
}
