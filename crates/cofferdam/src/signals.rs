//! Ctrl-C and its relatives.

use std::io;

use cofferdam_runner::Cancel;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::terminal::Notices;

/// What reached this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or SIGHUP because the terminal is gone.
    Terminate,
}

/// What is said of the first and of the second Ctrl-C.
pub(crate) struct Answers {
    first: &'static str,
    second: &'static str,
}

/// For a run of this process.
pub(crate) const OF_THIS_MACHINE: Answers =
    Answers { first: "cancelling the run (Ctrl-C again kills it)", second: "killing the run" };
/// For a run of a service, which cancels it in its own time.
pub(crate) const OF_A_SERVICE: Answers = Answers {
    first: "asking the service to cancel the run (Ctrl-C again leaves it to the service)",
    second: "leaving the run to the service",
};

/// Turns signals into requests to cancel, for as long as the process lives.
pub(crate) fn cancel_on_signals(
    notices: Notices,
    answers: &'static Answers,
) -> io::Result<watch::Receiver<Cancel>> {
    let (sender, receiver) = watch::channel(Cancel::No);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            let asked = tokio::select! {
                _ = interrupt.recv() => Asked::Interrupt,
                _ = terminate.recv() => Asked::Terminate,
                _ = hang_up.recv() => Asked::Terminate,
            };
            let before = *sender.borrow();
            let after = after(before, asked);
            if after != before {
                notices.say(match after {
                    Cancel::Now => answers.second,
                    _ => answers.first,
                });
                sender.send_replace(after);
            }
        }
    });
    Ok(receiver)
}

/// Ends when somebody asks this process to end.
pub(crate) async fn asked_to_end() -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

/// The first Ctrl-C asks, the second kills. A service manager that asks twice has not asked to kill: it has
/// a signal of its own for that.
fn after(before: Cancel, asked: Asked) -> Cancel {
    match (before, asked) {
        (Cancel::No, _) => Cancel::Gracefully,
        (_, Asked::Interrupt) => Cancel::Now,
        (before, Asked::Terminate) => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_asks_and_the_second_interrupt_kills() {
        let play = |signals: &[Asked]| signals.iter().fold(Cancel::No, |cancel, asked| after(cancel, *asked));
        assert_eq!(play(&[Asked::Interrupt]), Cancel::Gracefully);
        assert_eq!(play(&[Asked::Terminate]), Cancel::Gracefully);
        assert_eq!(play(&[Asked::Interrupt, Asked::Interrupt]), Cancel::Now);
        assert_eq!(play(&[Asked::Terminate, Asked::Interrupt]), Cancel::Now);
        assert_eq!(play(&[Asked::Terminate, Asked::Terminate]), Cancel::Gracefully);
        assert_eq!(play(&[Asked::Interrupt, Asked::Interrupt, Asked::Terminate]), Cancel::Now);
    }
}
