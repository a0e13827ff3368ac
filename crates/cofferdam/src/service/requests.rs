//! What asks a process of the service to end.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use cofferdam_runner::Stop;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Turns signals into requests to stop, for as long as the process lives: the first one asks for a graceful end, the next
/// for one at once.
pub(crate) fn until_asked_to_stop() -> io::Result<watch::Sender<Stop>> {
    let stop = watch::Sender::new(Stop::No);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let asked = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            asked.send_modify(|stop| *stop = after(*stop));
        }
    });
    Ok(stop)
}

fn after(before: Stop) -> Stop {
    match before {
        Stop::No => Stop::Drain,
        Stop::Drain | Stop::Now => Stop::Now,
    }
}

/// Returns when the supervisor of this process is gone, however it died. It holds the other end of our stdin.
///
/// # Errors
/// Stdin is not a pipe: nobody supervises this process.
pub(crate) fn supervisor_gone() -> io::Result<impl Future<Output = ()>> {
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut pipe = pipe::Receiver::from_file(stdin)?;
    Ok(async move {
        let mut nothing = [0; 64];
        // Nobody writes to it; if somebody does, that means nothing.
        while pipe.read(&mut nothing).await.is_ok_and(|count| count > 0) {}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_asks_and_the_second_insists() {
        assert_eq!(after(Stop::No), Stop::Drain);
        assert_eq!(after(Stop::Drain), Stop::Now);
        assert_eq!(after(Stop::Now), Stop::Now);
    }
}
