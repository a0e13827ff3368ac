//! What models cost.

use cofferdam_broker::{Price, PriceTable, long_from};
use cofferdam_core::PriceSettings;

/// The built-in prices with the caller's over them.
pub(crate) fn prices(settings: &PriceSettings) -> PriceTable {
    let mut table = PriceTable::default_prices();
    if let Some(as_of) = &settings.as_of {
        table.as_of.clone_from(as_of);
    }
    for (model, price) in &settings.models {
        let price = Price {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read.unwrap_or(price.input),
            cache_write: price.cache_write.unwrap_or(price.input),
            long_from: long_from(model),
        };
        table.models.insert(model.clone(), price);
    }
    table
}
