//! `cofferdam trust revoke`.

use std::path::PathBuf;

use clap::Args;

use super::folder_of;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::settings::TrustRecord;
use crate::terminal;

/// Trust a repository's settings and origin no longer
#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// The repository, or the file [default: the repository around the current folder]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

pub(super) fn run(args: &RevokeArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let folder = folder_of(args.path.as_deref(), caller);
    // What is gone can be taken back by the path that `trust list` shows.
    let folder = folder.canonicalize().unwrap_or(folder);
    let path = folder.join(".cofferdam/settings.json");
    let home = caller.open_state()?;
    let (file, origin) = (TrustRecord::revoke(&home, &path)?, TrustRecord::revoke_origin(&home, &folder)?);
    if !file && !origin {
        let message = format!("{} is not trusted", folder.display());
        return Err(UsageError::new(message, "type `cofferdam trust list` to see what is").into());
    }
    terminal::write_stderr("cofferdam: not trusted any more\n");
    Ok(ExitCode::Succeeded)
}
