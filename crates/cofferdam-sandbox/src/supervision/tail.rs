//! Follows the file that a worker prints to.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use rustix::fs::inotify;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream};

use crate::linux::watch_descriptor;

/// How much may be read ahead of the reader: a few of the longest lines.
const READ_AHEAD: usize = 4 << 20;
/// Looked at this often even without a notice, in case one was lost.
const FALLBACK: Duration = Duration::from_millis(250);

/// Everything that was and will be written to `path`, until `writer` (a process's descriptor) has ended;
/// without one, what is there now.
pub(crate) fn follow(path: &Path, writer: Option<OwnedFd>) -> io::Result<Pin<Box<dyn AsyncRead + Send>>> {
    let notices = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
    // Watching comes before reading, so that nothing falls between the two.
    inotify::add_watch(&notices, path, inotify::WatchFlags::MODIFY)?;
    let file = File::open(path)?;
    let notices = watch_descriptor(notices)?;
    let writer = writer.map(watch_descriptor).transpose()?;
    let (reader, copy) = tokio::io::duplex(READ_AHEAD);
    tokio::spawn(async move {
        // The reader may go away at any time; that ends the copying and nothing else.
        let _ = copy_all(file, &notices, writer, copy).await;
    });
    Ok(Box::pin(reader))
}

async fn copy_all(
    mut file: File,
    notices: &AsyncFd<OwnedFd>,
    writer: Option<AsyncFd<OwnedFd>>,
    mut copy: DuplexStream,
) -> io::Result<()> {
    let mut buffer = vec![0; 32 << 10];
    let mut ended = writer.is_none();
    loop {
        // A local file that was just written is in memory: this does not wait for a disk.
        let count = file.read(&mut buffer)?;
        if count > 0 {
            copy.write_all(&buffer[..count]).await?;
            continue;
        }
        if ended {
            return copy.shutdown().await;
        }
        tokio::select! {
            ready = notices.readable() => {
                drain(notices.as_fd());
                ready?.clear_ready();
            }
            // What was written before the end is read once more after it.
            _ = async { match &writer { Some(writer) => writer.readable().await.map(drop), None => Ok(()) } } => {
                ended = true;
            }
            () = tokio::time::sleep(FALLBACK) => {}
        }
    }
}

fn drain(notices: impl AsFd) {
    let mut buffer = [0; 4096];
    while rustix::io::read(&notices, &mut buffer[..]).is_ok_and(|count| count > 0) {}
}
