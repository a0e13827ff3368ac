//! `cofferdam start`: the service in the background.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use cofferdam_runner::Home;
use tokio::time::{Instant, sleep};

use super::serve::{self, ServeArgs};
use super::status::{self, Shown};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::service::{LogOf, Served, State, last_lines, log_path, open_log};
use crate::{sanitize, terminal};

/// How long a service may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How much of the log is shown when it did not come up.
const LINES: usize = 20;

/// Start the service in the background, and wait until it is ready
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

/// Starts it.
pub(crate) async fn run(args: &StartArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let name = &args.serve.node.name;
    if let State::Running(served) = status::look(&home, name)? {
        let pid = served.map_or(String::new(), |served| format!(" (pid {})", served.pid));
        return Err(Failure::new(ExitCode::Refused, format!("the service `{name}` runs already{pid}"))
            .hint("`cofferdam restart` starts it anew"));
    }
    start(&args.serve, &home).await?;
    Ok(ExitCode::Succeeded)
}

/// Starts the service and waits until it is ready.
pub(super) async fn start(args: &ServeArgs, home: &Home) -> Result<(), Failure> {
    let had_key = serve::has_key(home);
    let mut child =
        spawn(args, home).map_err(|error| Failure::internal("the service could not be started", &error))?;
    let served = until_ready(args, home, &mut child).await?;
    if let (false, Some(listens)) = (had_key, served.listen) {
        terminal::write_stderr(&serve::first_words(home, listens));
    }
    let shown = Shown { name: &args.node.name, state: &State::Running(Some(served)) };
    terminal::write_stdout(shown.to_string().as_bytes())
}

fn spawn(args: &ServeArgs, home: &Home) -> std::io::Result<Child> {
    let log = open_log(&log_path(home, LogOf::Serve, &args.node.name))?;
    Command::new(std::env::current_exe()?)
        .args(args.background_arguments())
        .env("COFFERDAM_HOME", home.root())
        .current_dir(home.root())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

async fn until_ready(args: &ServeArgs, home: &Home, child: &mut Child) -> Result<Served, Failure> {
    let give_up_at = Instant::now() + READY_WITHIN;
    loop {
        if let State::Running(Some(served)) = status::look(home, &args.node.name)?
            && served.is_ready
            && served.pid == child.id()
        {
            return Ok(served);
        }
        let ended =
            child.try_wait().map_err(|error| Failure::internal("the service cannot be watched", &error))?;
        match ended {
            Some(status) => return Err(did_not_come_up(args, home, &format!("it ended: {status}"))),
            None if Instant::now() >= give_up_at => {
                let why = format!("it is not ready after {} s, and goes on trying", READY_WITHIN.as_secs());
                return Err(did_not_come_up(args, home, &why));
            }
            None => sleep(LOOK_EVERY).await,
        }
    }
}

/// Says why, as far as the log knows.
fn did_not_come_up(args: &ServeArgs, home: &Home, why: &str) -> Failure {
    let log = log_path(home, LogOf::Serve, &args.node.name);
    let lines = last_lines(&log, LINES).unwrap_or_default();
    for line in lines.lines() {
        terminal::write_stderr(&format!("{}\n", sanitize::line(line)));
    }
    Failure::new(ExitCode::Failed, format!("the service did not come up: {why}"))
        .hint(format!("the lines above are the last of {}", log.display()))
}
