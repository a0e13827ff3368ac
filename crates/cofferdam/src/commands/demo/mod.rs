//! placeholder
pub(crate) mod agent {
    pub(crate) fn main() -> std::process::ExitCode {
        std::process::ExitCode::SUCCESS
    }
}
use crate::{caller::Caller, exit::ExitCode, failure::Failure};
use clap::Args;
/// Show on a sample repository what a sealed run holds
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
pub(crate) async fn run(args: &DemoArgs, _c: &Caller) -> Result<ExitCode, Failure> {
    let _ = args.json;
    Err(Failure::new(ExitCode::Internal, "the demo is not there yet"))
}
