//! `cofferdam restart`.

use clap::Args;

use super::serve::ServeArgs;
use super::{start, stop};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// Stop the service, if it runs, and start it in the background. Runs go on in their sandboxes meanwhile
#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

/// Restarts it. Runs are not waited for: they are taken up again at once.
pub(crate) async fn run(args: &RestartArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    stop::stop(&home, caller, &args.serve.node.name, true).await?;
    start::start(&args.serve, &home).await?;
    Ok(ExitCode::Succeeded)
}
