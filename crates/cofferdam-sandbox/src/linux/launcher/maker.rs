//! Who makes a sandbox's namespaces, where root starts it.
//!
//! What the kernel counts per user (inotify instances, pending signals, locked memory) it counts inside of a user namespace for the
//! process's own user, and outside for whoever made the namespace. If that were root, all sandboxes and root itself would share
//! one count. The attack: an agent takes all inotify instances that one user may have, and neither root nor any other run gets one.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, Uid, capabilities, set_capabilities, set_thread_res_uid,
};

use super::die_with_parent;
use crate::linux::plan::IdRange;
use crate::linux::sys::Cloned;

/// Clones as a user of the sandbox's own range, with all that root may do, and is root again afterwards. The new process takes its
/// own identity.
pub(super) fn as_maker(
    ids: Option<IdRange>,
    parent: i32,
    clone: impl FnOnce() -> io::Result<Cloned>,
) -> io::Result<Cloned> {
    // An ordinary user can be nobody else. Root that may not look into processes of others has to own those that it watches.
    let sees_others = capabilities(None)?.permitted.contains(CapabilitySet::SYS_PTRACE);
    let Some(ids) = ids.filter(|_| sees_others) else { return clone() };
    become_user(Uid::from_raw(ids.base))?;
    let cloned = clone();
    if !matches!(cloned, Ok(Cloned::Child)) {
        set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
        // Whoever becomes somebody else is no longer tied to its parent.
        die_with_parent(parent)?;
    }
    cloned
}

/// The saved user stays root, so that there is a way back.
fn become_user(user: Uid) -> io::Result<()> {
    set_thread_res_uid(user, user, Uid::ROOT)?;
    // They are still permitted, and no longer in effect.
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: sets.permitted, ..sets })?)
}
