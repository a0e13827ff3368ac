//! The first process of a container, as this machine sees it.

use std::fs;

use bollard::models::ContainerInspectResponse;

use crate::linux::ProcessRecord;

/// The container's first process, if it lives and is one of this machine. An engine in a virtual machine names a number
/// that is somebody else's here: only a process in the container's own control group is taken.
pub(super) fn of(container: &ContainerInspectResponse) -> Option<ProcessRecord> {
    let pid = i32::try_from(container.state.as_ref()?.pid?).ok().filter(|pid| *pid > 0)?;
    // First, so that a number that is given to another process meanwhile is noticed.
    let record = ProcessRecord::of(pid).ok()?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let id = container.id.as_deref().filter(|id| !id.is_empty())?;
    groups.contains(id).then_some(record)
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerState;

    use super::*;

    #[test]
    fn a_process_that_is_in_no_group_of_the_container_is_somebody_elses() {
        let state = ContainerState { pid: Some(std::process::id().into()), ..ContainerState::default() };
        let container = ContainerInspectResponse {
            id: Some("0123456789abcdef".repeat(4)),
            state: Some(state),
            ..ContainerInspectResponse::default()
        };
        assert_eq!(of(&container), None);
        assert_eq!(of(&ContainerInspectResponse { id: Some(String::new()), ..container }), None);
    }
}
