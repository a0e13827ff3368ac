//! `cofferdam sandbox show`: every value that holds, and where it was set.

use clap::Args;
use cofferdam_api::{SettingResponse, SettingsResponse};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::client_failure;
use crate::server::ServerFlag;
use crate::settings::{self, Local};
use crate::{sanitize, terminal};

/// Show every setting that holds here, and where it was set
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerFlag,
}

/// Shows them: those of the current folder, or those of a service, which has no folder.
pub(crate) async fn run(args: &ShowArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let (shown, local) = match args.server.called(caller)? {
        Some(called) => (called.client.settings().await.map_err(|error| client_failure(&error))?, None),
        None => {
            let loaded = settings::load(caller, &settings::local_folder(caller))?;
            loaded.warn();
            (SettingsResponse::from(&loaded.effective), loaded.local)
        }
    };
    terminal::write_answer(args.json, || to_json(&shown, local.as_ref()), || to_text(&shown))?;
    Ok(ExitCode::Succeeded)
}

fn to_text(shown: &SettingsResponse) -> String {
    let row = |one: &SettingResponse| [one.key.clone(), one.value.to_string(), one.origin.shown.clone()];
    let rows: Vec<[String; 3]> =
        shown.values.iter().map(|one| row(one).map(|cell| sanitize::line(&cell))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(40);
    let (keys, values) = (width(0), width(1));
    let line = |[key, value, origin]: &[String; 3]| format!("{key:<keys$}  {value:<values$}  {origin}\n");
    rows.iter().map(line).collect()
}

fn to_json(shown: &SettingsResponse, local: Option<&Local>) -> Value {
    let local = local.map(|local| {
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
    json!({ "settings": shown.settings, "values": shown.values, "local": local })
}
