//! What the kernel says of this process in `/proc/self/status`.

use cofferdam_core::CapabilitySets;

/// The lines of it that matter.
pub(super) struct Status {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) capabilities: CapabilitySets,
    pub(super) no_new_privileges: bool,
    pub(super) seccomp_mode: u32,
}

pub(super) fn read() -> Status {
    parse(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// A line that is missing counts as the weakest value: root, every capability, no wall.
fn parse(text: &str) -> Status {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    // Real, effective, saved and file-system id: any of them that is root makes it root.
    let id = |name| {
        let ids: Option<Vec<u32>> =
            field(name).map(|ids| ids.split_whitespace().map(|id| id.parse().unwrap_or(0)).collect());
        match ids.as_deref() {
            None | Some([]) => 0,
            Some(ids) if ids.contains(&0) => 0,
            Some([real, ..]) => *real,
        }
    };
    let set = |name| field(name).map_or(u64::MAX, |set| u64::from_str_radix(set, 16).unwrap_or(u64::MAX));
    Status {
        uid: id("Uid"),
        gid: id("Gid"),
        capabilities: CapabilitySets {
            effective: set("CapEff"),
            permitted: set("CapPrm"),
            inheritable: set("CapInh"),
            bounding: set("CapBnd"),
            ambient: set("CapAmb"),
        },
        no_new_privileges: field("NoNewPrivs") == Some("1"),
        seccomp_mode: field("Seccomp").and_then(|mode| mode.parse().ok()).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_cannot_be_read_counts_as_no_wall() {
        let status = parse("");
        assert_eq!((status.uid, status.gid, status.seccomp_mode), (0, 0, 0));
        assert_eq!(status.capabilities.bounding, u64::MAX);
        assert!(!status.no_new_privileges);
    }

    #[test]
    fn a_saved_root_id_counts_as_root() {
        assert_eq!(parse("Uid:\t1000\t1000\t0\t1000\n").uid, 0);
        assert_eq!(parse("Uid:\t1000\t1000\t1000\t1000\n").uid, 1000);
    }

    #[test]
    fn seccomp_is_not_confused_with_seccomp_filters() {
        assert_eq!(parse("Seccomp_filters:\t7\nSeccomp:\t2\n").seccomp_mode, 2);
    }
}
