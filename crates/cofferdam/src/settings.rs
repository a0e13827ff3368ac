//! Reads `settings.json` in the state folder.

use std::path::Path;

use cofferdam_broker::{Price, PriceTable};
use cofferdam_core::{PriceSettings, Settings};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// The caller's settings; the defaults if there is no file.
pub(crate) fn read(caller: &Caller) -> Result<Settings, Failure> {
    match caller.state_folder() {
        Some(folder) => read_in(&folder),
        None => Ok(Settings::default()),
    }
}

/// The settings in a state folder.
pub(crate) fn read_in(folder: &Path) -> Result<Settings, Failure> {
    let path = folder.join("settings.json");
    let refuse = |why: String| {
        Failure::new(ExitCode::Refused, format!("the settings in {} cannot be used: {why}", path.display()))
            .hint("correct the file, or move it away")
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| refuse(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(refuse(error.to_string())),
    }
}

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
        };
        table.models.insert(model.clone(), price);
    }
    table
}
