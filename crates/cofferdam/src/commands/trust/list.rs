//! `cofferdam trust list`.

use clap::Args;
use cofferdam_api::TrustList;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::client_failure;
use crate::server::ServerFlag;
use crate::{sanitize, settings, terminal};

/// List the files and origins that are trusted, and whether they still are what was trusted
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerFlag,
}

pub(super) async fn run(args: &ListArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let list = match args.server.called(caller)? {
        Some(called) => called.client.trust().await.map_err(|error| client_failure(&error))?,
        None => settings::trust_list(caller.state_to_read()?.as_deref())?,
    };
    terminal::write_answer(args.json, || serde_json::json!(list), || to_text(&list))?;
    Ok(ExitCode::Succeeded)
}

fn to_text(list: &TrustList) -> String {
    let mut text = String::new();
    for file in &list.files {
        let (sha256, path) = (sanitize::line(&file.sha256), sanitize::line(&file.path));
        text.push_str(&format!("{:<8} {sha256:.12}  {path}\n", file.state.as_str()));
    }
    for origin in &list.origins {
        let shown = sanitize::line(&format!("{} origin {}", origin.path, origin.origin));
        text.push_str(&format!("{:<8} {:<12}  {shown}\n", origin.state.as_str(), "-"));
    }
    text
}
