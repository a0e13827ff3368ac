//! Waiting until a supervisor has heard what is wanted.

use std::time::Duration;

use cofferdam_core::ProcessName;
use tokio::time::{Instant, sleep};

use super::{Process, ProcessService};
use crate::Operations;
use crate::error::Error;

/// How long somebody who asks waits to see what came of it.
const WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Operations {
    /// The process once this holds of it, or after a while, or at once where nobody is there to hear.
    pub(super) async fn settled(
        &self,
        service: &ProcessService,
        name: ProcessName,
        holds: impl Fn(&Process) -> bool,
    ) -> Result<Process, Error> {
        let give_up_at = Instant::now() + WITHIN;
        loop {
            let process = self.process(service, name).await?;
            let is_heard = process.report.heard >= process.asked;
            if !service.is_live || (is_heard && holds(&process)) || Instant::now() >= give_up_at {
                return Ok(process);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
