//! `cofferdam sandbox show`: every value that holds, and where it was set.

use clap::Args;
use cofferdam_core::{KeyPath, Origin};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::settings::{self, Loaded};
use crate::{sanitize, terminal};

/// Show every setting that holds here, and where it was set
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows them.
pub(crate) fn run(args: &ShowArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let loaded = settings::load(caller, &settings::local_folder(caller))?;
    loaded.warn();
    terminal::write_answer(args.json, || to_json(&loaded), || to_text(&loaded))?;
    Ok(ExitCode::Succeeded)
}

fn to_text(loaded: &Loaded) -> String {
    let rows: Vec<[String; 3]> = loaded
        .effective
        .values()
        .into_iter()
        .map(|(path, value, origin)| [path.to_string(), value.to_string(), origin.to_string()])
        .map(|row| row.map(|cell| sanitize::line(&cell)))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(40);
    let (keys, values) = (width(0), width(1));
    let line = |[key, value, origin]: &[String; 3]| format!("{key:<keys$}  {value:<values$}  {origin}\n");
    rows.iter().map(line).collect()
}

fn to_json(loaded: &Loaded) -> Value {
    let one = |(path, value, origin): (KeyPath, Value, Origin)| json!({ "key": path.to_string(), "value": value, "origin": origin_json(&origin) });
    let values: Vec<Value> = loaded.effective.values().into_iter().map(one).collect();
    let local = loaded.local.as_ref().map(|local| {
        let refused: Vec<Value> = local
            .refused
            .iter()
            .map(|refused| json!({ "key": refused.path.to_string(), "value": refused.value }))
            .collect();
        json!({
            "path": local.file.path.to_string_lossy(),
            "sha256": local.file.sha256,
            "trusted": local.is_trusted,
            "left_out": refused,
        })
    });
    json!({ "settings": loaded.effective.settings, "values": values, "local": local })
}

fn origin_json(origin: &Origin) -> Value {
    match origin {
        Origin::Default => json!({ "kind": origin.kind() }),
        Origin::Global(path) | Origin::Local(path) | Origin::Untrusted(path) => {
            json!({ "kind": origin.kind(), "path": path.to_string_lossy() })
        }
        Origin::Environment(variable) => json!({ "kind": origin.kind(), "variable": variable }),
    }
}
