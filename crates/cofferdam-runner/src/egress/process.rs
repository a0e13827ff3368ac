//! Keeps a broker of its own running beside a node.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The pause before a broker that ended is started again. It doubles, so that one which cannot start does not
/// use up the machine, and begins anew for one that has served for a while.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const A_WHILE: Duration = Duration::from_secs(10);

/// Starts a broker when the first attempt needs one, and again whenever it ends.
///
/// The broker is in a process group of its own and is left running when this process ends: its streams belong to
/// agents that go on. It ends by itself when nobody needs it.
#[derive(Debug, Clone)]
pub struct BrokerProcess {
    command: Arc<Vec<OsString>>,
    keeping: Arc<OnceCell<Keeping>>,
}

#[derive(Debug)]
struct Keeping(JoinHandle<()>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BrokerProcess {
    /// A broker that is started with this program and these arguments; not empty.
    #[must_use]
    pub fn new(command: Vec<OsString>) -> Self {
        Self { command: Arc::new(command), keeping: Arc::new(OnceCell::new()) }
    }

    pub(super) async fn ensure(&self) {
        let command = Arc::clone(&self.command);
        self.keeping.get_or_init(async || Keeping(tokio::spawn(keep(command)))).await;
    }
}

async fn keep(command: Arc<Vec<OsString>>) {
    let Some((program, arguments)) = command.split_first() else { return };
    let mut pause = FIRST_PAUSE;
    loop {
        let started = Instant::now();
        let mut broker = Command::new(program);
        broker.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        match broker.status().await {
            Ok(status) => tracing::info!(%status, "the broker ended, and is started again"),
            Err(error) => tracing::warn!(%error, "the broker could not be started"),
        }
        pause = if started.elapsed() >= A_WHILE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}
