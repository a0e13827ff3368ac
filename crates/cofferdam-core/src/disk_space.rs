//! How much room a disk has.

use crate::quantity::show_bytes;

/// The part of a disk, as one in so many, below which it is said to be nearly full: what runs then still has room to end.
const ONE_IN: u64 = 20;

/// The room of the disk that a folder is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// What can still be written.
    pub free_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

impl DiskSpace {
    /// Whether less than 5 % of it is free.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.free_bytes < self.total_bytes / ONE_IN
    }

    /// For people: `3.1 % free (1.2 GiB of 40 GiB)`.
    #[must_use]
    pub fn words(&self) -> String {
        let percent = self.free_bytes as f64 * 100.0 / self.total_bytes.max(1) as f64;
        format!("{percent:.1} % free ({} of {})", show_bytes(self.free_bytes), show_bytes(self.total_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_low_below_a_twentieth() {
        let space = |free_bytes| DiskSpace { free_bytes, total_bytes: 40 << 30 };
        assert!(space(0).is_low() && space((2 << 30) - 1).is_low());
        assert!(!space(2 << 30).is_low() && !space(40 << 30).is_low());
        assert!(
            !DiskSpace { free_bytes: 0, total_bytes: 0 }.is_low(),
            "a file system without a size has no end"
        );
        assert_eq!(space(1 << 30).words(), "2.5 % free (1 GiB of 40 GiB)");
    }
}
