//! `cofferdam trust`: lets the settings file of a repository take effect, and git tokens open its `origin`, as they are now.

mod list;
mod revoke;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cofferdam_runner::workspace;

use crate::caller::{Caller, now_ms};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::settings::{self, LocalFile, TrustRecord};
use crate::{repository, sanitize, terminal};

/// Let a repository's settings take effect and git tokens open its origin, as both are now
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    command: Option<TrustCommand>,
    /// The repository, or the file [default: the repository around the current folder]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

/// What to do with trusted files.
#[derive(Debug, Subcommand)]
enum TrustCommand {
    List(list::ListArgs),
    Revoke(revoke::RevokeArgs),
}

/// Does what was asked.
pub(crate) async fn run(args: &TrustArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(TrustCommand::List(args)) => list::run(args, caller).await,
        Some(TrustCommand::Revoke(args)) => revoke::run(args, caller),
        None => trust(args.path.as_deref(), caller),
    }
}

/// Shows what takes effect, and records the very bytes and the very address that were shown.
fn trust(path: Option<&Path>, caller: &Caller) -> Result<ExitCode, Failure> {
    let folder = folder_of(path, caller);
    let folder = folder.canonicalize().unwrap_or(folder);
    let file = settings::local_file(&folder, caller.state_folder().as_deref())?;
    let origin = workspace::origin(&folder).filter(|url| url.https_host().is_some());
    if file.is_none() && origin.is_none() {
        let message =
            format!("there is no .cofferdam/settings.json and no https `origin` in {}", folder.display());
        let hint = "change to the repository that has one, or name it: `cofferdam trust PATH`";
        return Err(UsageError::new(message, hint).into());
    }
    if let Some(file) = &file {
        trust_file(file, caller)?;
    }
    if let Some(origin) = &origin {
        let shown = sanitize::line(&format!("{} origin {origin}", folder.display()));
        terminal::write_stdout(format!("{shown}\n  opened with your git tokens for its host\n").as_bytes())?;
        TrustRecord::trust_origin(&caller.open_state()?, &folder, origin, now_ms())?;
    }
    terminal::write_stderr("cofferdam: trusted, until it changes; `cofferdam trust revoke` takes it back\n");
    Ok(ExitCode::Succeeded)
}

fn trust_file(file: &LocalFile, caller: &Caller) -> Result<(), Failure> {
    let gained = settings::gains(caller, file)?;
    let mut text = format!("{}\n", shown(file));
    if gained.is_empty() {
        text.push_str("  nothing in it needs to be trusted\n");
    }
    for one in &gained {
        text.push_str(&format!("  {}\n", sanitize::line(&format!("{} = {}", one.path, one.value))));
    }
    terminal::write_stdout(text.as_bytes())?;
    if gained.iter().any(|one| one.value == "host") {
        terminal::write_stderr(
            "cofferdam: WARNING: with this file there is no wall around agents (mode host)\n",
        );
    }
    TrustRecord::trust(&caller.open_state()?, file, now_ms())
}

fn shown(file: &LocalFile) -> String {
    format!("{}\n  sha256 {}", sanitize::line(&file.path.display().to_string()), file.sha256)
}

/// The folder whose settings are meant by a path of a repository, of a folder in one, or of the file itself.
fn folder_of(path: Option<&Path>, caller: &Caller) -> PathBuf {
    let Some(path) = path else { return settings::local_folder(caller) };
    let path = caller.resolve(path);
    if path.ends_with(".cofferdam/settings.json") {
        return path.parent().and_then(Path::parent).unwrap_or(&path).to_owned();
    }
    repository::root_around(&path).unwrap_or(path)
}
