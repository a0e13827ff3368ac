//! The sandboxes that have a folder on this machine.

use std::path::Path;

use cofferdam_core::{NodeId, SandboxId};
use serde::Deserialize;

use crate::backend::{Listed, OpenError};
use crate::folder::{Folder, Record};

/// What the plan of every sandbox says.
#[derive(Deserialize)]
struct Plan {
    node: NodeId,
}

/// The sandboxes below a folder, with who made them: by the plan that is in this record.
pub(crate) fn list(parent: &Path, record: Record) -> Result<Vec<Listed>, OpenError> {
    let ids =
        Folder::list(parent).map_err(|source| OpenError::Listing { path: parent.to_owned(), source })?;
    let read = |folder: &Folder| folder.read::<Plan>(record).ok().flatten();
    let listed = |id: SandboxId| {
        let folder = Folder::new(parent, &id);
        let plan = read(&folder).or_else(|| read(&folder.leaving()));
        Listed { id, node: plan.map(|plan| plan.node) }
    };
    Ok(ids.into_iter().map(listed).collect())
}
