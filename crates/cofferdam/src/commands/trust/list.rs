//! `cofferdam trust list`.

use std::path::Path;

use clap::Args;
use cofferdam_runner::workspace;
use serde_json::json;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::settings::{self, TrustRecord};
use crate::{sanitize, terminal};

/// List the files and origins that are trusted, and whether they still are what was trusted
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ListArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let state = caller.state_to_read()?;
    let record = TrustRecord::read(state.as_deref())?;
    let files: Vec<_> =
        record.files().map(|(path, trusted)| (path, trusted, state_of(path, &record))).collect();
    let origins: Vec<_> =
        record.origins().map(|(root, trusted)| (root, trusted, state_of_origin(root, &record))).collect();
    if args.json {
        let files: Vec<_> = files
            .iter()
            .map(|(path, trusted, now)| {
                json!({"path": path, "sha256": trusted.sha256, "trusted_at_ms": trusted.trusted_at_ms, "state": now})
            })
            .collect();
        let origins: Vec<_> = origins
            .iter()
            .map(|(root, trusted, now)| {
                json!({"path": root, "origin": trusted.url, "trusted_at_ms": trusted.trusted_at_ms, "state": now})
            })
            .collect();
        terminal::write_json(&json!({ "files": files, "origins": origins }))?;
        return Ok(ExitCode::Succeeded);
    }
    let mut text = String::new();
    for (path, trusted, now) in files {
        let path = sanitize::line(&path.display().to_string());
        text.push_str(&format!("{now:<8} {}  {path}\n", &trusted.sha256[..12.min(trusted.sha256.len())]));
    }
    for (root, trusted, now) in origins {
        let shown = sanitize::line(&format!("{} origin {}", root.display(), trusted.url));
        text.push_str(&format!("{now:<8} {:<12}  {shown}\n", "-"));
    }
    terminal::write_stdout(text.as_bytes())?;
    Ok(ExitCode::Succeeded)
}

/// `trusted`, `changed` (so that it is not trusted any more) or `missing`.
fn state_of(path: &Path, record: &TrustRecord) -> &'static str {
    let folder = path.parent().and_then(Path::parent);
    match folder.and_then(|folder| settings::local_file(folder, None).transpose()) {
        None => "missing",
        Some(Ok(file)) if file.path == path && record.trusts(&file) => "trusted",
        Some(_) => "changed",
    }
}

fn state_of_origin(root: &Path, record: &TrustRecord) -> &'static str {
    match workspace::origin(root) {
        None => "missing",
        Some(url) if record.trusts_origin(root, &url) => "trusted",
        Some(_) => "changed",
    }
}
