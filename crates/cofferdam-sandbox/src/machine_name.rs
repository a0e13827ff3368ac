//! What a sandbox is called where the whole machine sees it: its control group, its scope, its container.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cofferdam_core::SandboxId;

/// The name of a sandbox of this state folder. Its id alone would not do: a state folder with a copy of another's record
/// has sandboxes of the same ids, and whoever ends what is in a group or a container of that name would end the other
/// folder's agent.
pub(crate) fn machine_name(state: &Path, id: &SandboxId) -> String {
    // FNV-1a: always the same for one path, since a later process has to find the group again.
    let bytes = state.as_os_str().as_bytes().iter();
    let tag = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("cofferdam-{id}-{tag:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{AttemptRef, RunId};

    #[test]
    fn two_state_folders_call_a_sandbox_of_the_same_id_differently() {
        let id = SandboxId::of(&AttemptRef { run: RunId::new(1, 1), number: 1 });
        let name = |state: &str| machine_name(Path::new(state), &id);
        assert_ne!(name("/home/me/.cofferdam"), name("/home/me/.cofferdam-copy"));
        assert_eq!(name("/home/me/.cofferdam"), name("/home/me/.cofferdam"));
        assert!(name("/home/me/.cofferdam").starts_with(&format!("cofferdam-{id}-")));
    }
}
