//! A hint for file systems of the ext family.

use std::fs::File;
use std::path::Path;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

/// Says that the folders in this one have nothing to do with each other, so that each may be put elsewhere on the disk.
///
/// Sandboxes come and go by the dozen each second. Put side by side, as ext4 would, each new file is looked for among the
/// places of all that were just removed; without a journal, where those may not be used again at once, that took a fifth
/// of a busy machine. A file system that does not know the hint does without.
pub fn spread(folder: &Path) {
    let Ok(folder) = File::open(folder) else { return };
    if let Ok(flags) = ioctl_getflags(&folder)
        && !flags.contains(IFlags::TOPDIR)
    {
        let _ = ioctl_setflags(&folder, flags | IFlags::TOPDIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXT: u64 = 0xef53;

    #[test]
    fn a_folder_of_ext4_is_marked_and_any_other_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let flags = || ioctl_getflags(File::open(folder.path()).unwrap()).map(|flags| flags.bits());
        let before = flags();
        spread(folder.path());
        spread(&folder.path().join("no-such-folder"));
        let is_ext = rustix::fs::statfs(folder.path()).unwrap().f_type.cast_unsigned() == EXT;
        let after = before.map(|flags| if is_ext { flags | IFlags::TOPDIR.bits() } else { flags });
        assert_eq!(flags(), after);
        // What is made in it does not inherit the mark.
        std::fs::create_dir(folder.path().join("inside")).unwrap();
        let inside = ioctl_getflags(File::open(folder.path().join("inside")).unwrap());
        assert!(inside.map_or(true, |flags| !flags.contains(IFlags::TOPDIR)));
    }
}
