//! `cofferdam sandbox set`: the mode of every run that does not name one.

use clap::Args;
use cofferdam_core::Mode;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::{sanitize, settings, terminal};

/// Set the mode of runs that name none, in the settings of the state folder
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// `native`, `docker` and `apple` seal agents off; `host` does NOT
    #[arg(value_name = "native|docker|apple|host")]
    mode: String,
}

/// Sets it.
pub(crate) fn run(args: &SetArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let mode: Mode = args.mode.parse().map_err(|error: cofferdam_core::UnknownMode| {
        UsageError::new(error.to_string(), "type `cofferdam sandbox set native`, `docker`, `apple` or `host`")
    })?;
    settings::set_mode(&caller.open_state()?, mode)?;
    let mut said = format!("cofferdam: the mode of runs is now `{mode}`\n");
    match mode {
        Mode::Host => said.push_str(
            "cofferdam: WARNING: `host` puts no wall around agents: they can do whatever you can\n",
        ),
        Mode::Docker | Mode::Apple => said.push_str(&format!(
            "cofferdam: type `cofferdam sandbox doctor --mode {mode}` to see whether a run would start\n"
        )),
        Mode::Native => {}
    }
    let loaded = settings::load(caller, &settings::local_folder(caller))?;
    let holds = loaded.effective.settings.sandbox.mode;
    if holds != mode {
        let origin = loaded.effective.origin_of(&["sandbox", "mode"]).to_string();
        let origin = sanitize::line(&origin);
        said.push_str(&format!("cofferdam: WARNING: here it is still `{holds}`, by {origin}\n"));
    }
    terminal::write_stderr(&said);
    Ok(ExitCode::Succeeded)
}
