//! `cofferdam logs`.

use std::time::Duration;

use clap::Args;
use cofferdam_core::{NodeName, UnknownProcess};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::service::{LogOf, Tail, log_path};
use crate::{sanitize, terminal};

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Print what the processes of the service have said
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Of which service
    #[arg(long, value_name = "NAME", default_value_t)]
    name: NodeName,

    /// Of which process: `serve`, `dispatcher`, `broker`, `worker-1` …; of all without this
    #[arg(long, value_name = "PROCESS")]
    role: Option<LogOf>,

    /// Go on with what they say from now on
    #[arg(long, short)]
    follow: bool,

    /// How many of the last lines of each
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    lines: usize,
}

/// Prints them.
pub(crate) async fn run(args: &LogsArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let unreadable = |error: std::io::Error| Failure::internal("a log cannot be read", &error);
    let roles = args.role.map_or_else(|| LogOf::all(&home, &args.name), |role| vec![role]);
    let mut tails = Vec::new();
    for role in roles {
        let (tail, last) = Tail::open(&log_path(&home, role, &args.name), args.lines).map_err(unreadable)?;
        print(args, role, &last)?;
        tails.push((role, tail));
    }
    if !args.follow {
        return Ok(ExitCode::Succeeded);
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        for (role, tail) in &mut tails {
            print(args, *role, &tail.more().map_err(unreadable)?)?;
        }
    }
}

/// Follows the log of one process.
pub(super) async fn follow(
    name: NodeName,
    process: &str,
    lines: usize,
    caller: &Caller,
) -> Result<ExitCode, Failure> {
    let role =
        process.parse().map_err(|error: UnknownProcess| Failure::new(ExitCode::Usage, error.to_string()))?;
    run(&LogsArgs { name, role: Some(LogOf::Process(role)), follow: true, lines }, caller).await
}

/// With more than one log, each line says whose it is.
fn print(args: &LogsArgs, role: LogOf, text: &str) -> Result<(), Failure> {
    let prefix = match args.role {
        Some(_) => String::new(),
        None => format!("{role:<10} | "),
    };
    let lines: String = text.lines().map(|line| format!("{prefix}{}\n", sanitize::line(line))).collect();
    terminal::write_stdout(lines.as_bytes())
}
