//! Whether the service is well, looked at once a second for all who ask: asking costs nothing and waits for nothing.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cofferdam_core::{DiskSpace, Mode};
use cofferdam_store::{NodeHealth, NodeRecord, StateCounts, disk_space};
use tokio::sync::watch;

use crate::app::{App, now_ms};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Counting runs reads all of their states, which is not done as often.
const COUNT_EVERY: u32 = 5;
/// A store that has not answered by then is not usable.
const PATIENCE: Duration = Duration::from_secs(3);
/// A node that has not told of itself for so long may be gone.
pub(crate) const SILENT_MS: u64 = 30_000;

/// What was seen when it was last looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Why new work cannot be taken; `None` if it can.
    pub(crate) store_fault: Option<String>,
    /// Why work that is taken may wait.
    pub(crate) backend_fault: Option<String>,
    /// The disk of the state folder, if there is one that can be looked at.
    pub(crate) disk: Option<DiskSpace>,
    /// The nodes that live.
    pub(crate) nodes: Vec<NodeRecord>,
    /// How many runs there are.
    pub(crate) counts: StateCounts,
}

impl Seen {
    pub(crate) fn reasons(&self) -> Vec<String> {
        let disk = self.disk.filter(DiskSpace::is_low);
        // Said while new work can still be taken: a full disk refuses it.
        let disk = disk.map(|space| format!("the disk of the state folder has {}", space.words()));
        self.store_fault.iter().chain(&self.backend_fault).cloned().chain(disk).collect()
    }
}

/// The newest look.
#[derive(Default)]
pub(crate) struct Status {
    seen: RwLock<Arc<Seen>>,
}

impl Status {
    pub(crate) fn now(&self) -> Arc<Seen> {
        Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, seen: Seen) {
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(seen);
    }
}

/// Looks until told to stop.
pub(crate) async fn watch(app: App, mut stopping: watch::Receiver<bool>) {
    let mut round = 1;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        look(&app, round % COUNT_EVERY == 0).await;
        round += 1;
    }
}

/// Looks once.
pub(crate) async fn look(app: &App, with_counts: bool) {
    let before = app.status().now();
    let looked = tokio::time::timeout(PATIENCE, async {
        let nodes = app.store().nodes().await?;
        let counts = match with_counts {
            true => app.store().state_counts(now_ms()).await?,
            false => before.counts.clone(),
        };
        Ok::<_, cofferdam_operations::Error>((nodes, counts, app.operations().mode().await?))
    })
    .await;
    let disk = disk(app).await;
    let seen = match looked {
        Ok(Ok((nodes, counts, mode))) => {
            let now_ms = now_ms();
            let nodes: Vec<NodeRecord> =
                nodes.into_iter().filter(|node| now_ms.saturating_sub(node.seen_at_ms) < SILENT_MS).collect();
            let backend_fault = backend_fault(&nodes, mode);
            Seen { store_fault: None, backend_fault, disk, nodes, counts }
        }
        Ok(Err(_)) | Err(_) => {
            let store_fault = Some("the record of runs cannot be used".to_owned());
            Seen { store_fault, disk, ..(*before).clone() }
        }
    };
    app.status().set(seen);
}

/// The room of the state folder's disk. `None` if it does not answer, which a folder of another machine may not.
async fn disk(app: &App) -> Option<DiskSpace> {
    let folder = app.options().state_folder.clone()?;
    let looking = tokio::task::spawn_blocking(move || disk_space(&folder).ok());
    tokio::time::timeout(PATIENCE, looking).await.ok()?.ok()?
}

/// Why no node can execute a run of the mode that is in force.
fn backend_fault(nodes: &[NodeRecord], mode: Mode) -> Option<String> {
    if nodes.is_empty() {
        return Some("no node that executes runs has told of itself".to_owned());
    }
    let faults: Option<Vec<String>> = nodes.iter().map(|node| fault_of(node, mode)).collect();
    faults.map(|faults| faults.join("; "))
}

fn fault_of(node: &NodeRecord, mode: Mode) -> Option<String> {
    let name = &node.report.name;
    match &node.report.health {
        NodeHealth::Resting { reason, .. } => return Some(format!("node {name} rests: {reason}")),
        NodeHealth::Draining => return Some(format!("node {name} is about to stop")),
        NodeHealth::Ready => {}
    }
    match node.report.modes.iter().find(|report| report.mode == mode) {
        Some(report) => {
            report.missing.as_ref().map(|missing| format!("node {name} cannot use mode {mode}: {missing}"))
        }
        None => Some(format!("node {name} does not know mode {mode}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{NodeId, PlaceId};
    use cofferdam_store::{ModeReport, NodeReport};

    fn node(name: &str, missing: Option<&str>, health: NodeHealth) -> NodeRecord {
        NodeRecord {
            id: NodeId::new(1, 1),
            place: PlaceId::new(1, 1),
            started_at_ms: 0,
            seen_at_ms: 0,
            report: NodeReport {
                name: name.to_owned(),
                host: "h".to_owned(),
                version: "1".to_owned(),
                roles: Vec::new(),
                capacity: 1,
                running: 0,
                health,
                modes: vec![ModeReport { mode: Mode::Docker, missing: missing.map(str::to_owned) }],
            },
        }
    }

    #[test]
    fn a_disk_that_is_nearly_full_is_a_reason_to_look() {
        let seen = |free_bytes| Seen {
            disk: Some(DiskSpace { free_bytes, total_bytes: 1_000 << 20 }),
            ..Seen::default()
        };
        assert_eq!(seen(50 << 20).reasons(), Vec::<String>::new());
        let low = seen(40 << 20).reasons();
        assert_eq!(low, ["the disk of the state folder has 4.0 % free (40 MiB of 1000 MiB)"]);
    }

    #[test]
    fn one_node_that_can_is_enough() {
        let can = node("a", None, NodeHealth::Ready);
        let cannot = node("b", Some("no engine"), NodeHealth::Ready);
        assert_eq!(backend_fault(&[can.clone(), cannot.clone()], Mode::Docker), None);
        let fault = backend_fault(std::slice::from_ref(&cannot), Mode::Docker).unwrap();
        assert!(fault.contains("no engine"), "{fault}");
        assert!(backend_fault(&[can], Mode::Native).is_some() && backend_fault(&[], Mode::Native).is_some());
        let drains = node("c", None, NodeHealth::Draining);
        assert!(backend_fault(&[drains], Mode::Docker).is_some());
    }
}
