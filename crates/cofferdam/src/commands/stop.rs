//! `cofferdam stop`.

use std::time::Duration;

use clap::Args;
use cofferdam_core::NodeName;
use cofferdam_runner::Home;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::status;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::service::{Served, State};
use crate::{settings, terminal};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a service may take beyond its drain.
const BEYOND_DRAIN: Duration = Duration::from_secs(30);

/// Stop the service that runs in the background
///
/// It waits for its runs as long as `service.drain_seconds` says; what is not done then goes on in its sandbox, and the next
/// start takes it up again.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Which one
    #[arg(long, value_name = "NAME", default_value_t)]
    name: NodeName,

    /// Do not wait for runs
    #[arg(long)]
    now: bool,
}

/// Stops it.
pub(crate) async fn run(args: &StopArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let text = match stop(&home, caller, &args.name, args.now).await? {
        Stopped::Now => format!("stopped `{}`\n", args.name),
        Stopped::Before => format!("`{}` does not run\n", args.name),
    };
    terminal::write_stdout(text.as_bytes())?;
    Ok(ExitCode::Succeeded)
}

/// Whether there was something to stop.
pub(super) enum Stopped {
    /// It has ended.
    Now,
    /// It did not run.
    Before,
}

/// Stops the service and waits until it is gone.
pub(super) async fn stop(
    home: &Home,
    caller: &Caller,
    name: &NodeName,
    now: bool,
) -> Result<Stopped, Failure> {
    let drain = settings::read_for_service(caller)?.settings.service.drain_seconds.count();
    // A flag of the one that runs may have made it longer.
    let give_up_at = Instant::now() + Duration::from_secs(drain.into()) + BEYOND_DRAIN;
    let mut asked: Option<u32> = None;
    loop {
        let served = match status::look(home, name)? {
            State::Running(served) => served,
            State::Stopped | State::Unclean(_) => {
                return Ok(if asked.is_some() { Stopped::Now } else { Stopped::Before });
            }
        };
        // Two signals that come together are one, and the first only asks: who is not to wait is told so again.
        if let Some(Served { pid, .. }) = served
            && (now || asked != Some(pid))
        {
            signal(pid, name)?;
            asked = Some(pid);
        }
        if Instant::now() >= give_up_at {
            return Err(Failure::new(ExitCode::Failed, format!("the service `{name}` is still stopping"))
                .hint("`cofferdam stop --now` does not wait for its runs"));
        }
        sleep(LOOK_EVERY).await;
    }
}

fn signal(pid: u32, name: &NodeName) -> Result<(), Failure> {
    let refused = |why: &str| {
        Failure::new(
            ExitCode::Refused,
            format!("the service `{name}` (pid {pid}) cannot be asked to stop: {why}"),
        )
    };
    let process = Pid::from_raw(pid.cast_signed()).ok_or_else(|| refused("that is no process"))?;
    match kill_process(process, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(refused(&errno.to_string())),
    }
}
