//! Processes for people.

use std::fmt::Write as _;

use cofferdam_api::{ProcessResponse, StartProcessResponse, StopProcessResponse};
use cofferdam_core::{DesiredState, ProcessKind, ProcessStatus};

use crate::sanitize;

/// A line for each.
pub(super) fn table(processes: &[ProcessResponse]) -> String {
    let mut text = format!("{:<12} {:<9} {:>8}  NOTES\n", "PROCESS", "STATUS", "PID");
    for process in processes {
        let pid = process.pid.map_or("-".to_owned(), |pid| pid.to_string());
        let line =
            format!("{:<12} {:<9} {pid:>8}  {}", process.name, status(process), notes(process).join("; "));
        let _ = writeln!(text, "{}", sanitize::line(line.trim_end()));
    }
    text
}

fn status(process: &ProcessResponse) -> &'static str {
    match (process.status, process.desired) {
        (ProcessStatus::Running, Some(DesiredState::Stopped)) => "draining",
        (status, _) => status.as_str(),
    }
}

fn notes(process: &ProcessResponse) -> Vec<String> {
    let mut notes = Vec::new();
    if process.kind == ProcessKind::Worker {
        notes.push("runs tasks as processes of the machine (mode host)".to_owned());
    }
    if process.restarts > 0 {
        notes.push(format!("started again {} times", process.restarts));
    }
    notes.extend(process.message.clone());
    notes
}

pub(super) fn started(started: &StartProcessResponse) -> String {
    let name = &started.process.name;
    let text = match (&started.reason, started.already_running, started.process.pid) {
        (Some(reason), _, _) => format!("skipped: {reason}"),
        (None, true, _) => format!("{name} runs already"),
        (None, false, Some(pid)) => format!("started {name} (pid {pid})"),
        (None, false, None) => {
            let message = started
                .process
                .message
                .as_deref()
                .unwrap_or("its service does not run, and starts it with itself");
            format!("{name} is to run: {message}")
        }
    };
    format!("{}\n", sanitize::line(&text))
}

pub(super) fn stopped(stopped: &StopProcessResponse) -> String {
    let name = &stopped.process.name;
    let runs = match stopped.cancelled_runs {
        0 => String::new(),
        count => format!("; {count} runs were asked to end"),
    };
    match stopped.process.status {
        ProcessStatus::Running => format!("{name} takes nothing new, and finishes what it has{runs}\n"),
        ProcessStatus::Idle | ProcessStatus::Failed | ProcessStatus::Stopped => {
            format!("stopped {name}{runs}\n")
        }
    }
}
