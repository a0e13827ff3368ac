//! The mount table, and where a file can be made, by trying.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use cofferdam_core::MountFact;
use rustix::fs::{CWD, Mode, OFlags};

/// The mount table of this process, in the kernel's order.
pub(super) fn mounts() -> Vec<MountFact> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    String::from_utf8_lossy(&table).lines().filter_map(parse).collect()
}

/// `36 35 98:0 /root /target rw,nosuid shared:1 - ext4 /dev/sda rw,errors=continue`: a mount is read-only
/// if it is so itself, or if all of its file system is.
fn parse(line: &str) -> Option<MountFact> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let target = unescape(mount.next()?);
    let options = mount.next()?;
    let mut file_system = file_system.split(' ');
    let fs_type = file_system.next()?.to_owned();
    let super_options = file_system.nth(1).unwrap_or_default();
    let read_only = [options, super_options].iter().any(|list| list.split(',').any(|word| word == "ro"));
    Some(MountFact { target, fs_type, read_only })
}

/// The kernel writes a blank, tab, newline and backslash as three octal digits.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 4)
            .filter(|_| bytes[at] == b'\\')
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    OsString::from_vec(plain).to_string_lossy().into_owned()
}

/// Every folder of the mount points and `paths` in which a file could be made.
pub(super) fn writable(mounts: &[MountFact], paths: &[String]) -> Vec<String> {
    let folders: BTreeSet<&str> =
        mounts.iter().map(|mount| mount.target.as_str()).chain(paths.iter().map(String::as_str)).collect();
    folders.into_iter().filter(|folder| make_file(Path::new(folder))).map(str::to_owned).collect()
}

/// Tries, because options and modes do not say everything: Landlock shows nowhere.
fn make_file(folder: &Path) -> bool {
    let file = folder.join(format!(".cofferdam-probe-{}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(CWD, &file, flags, Mode::from_raw_mode(0o600)).is_ok();
    if made {
        let _ = std::fs::remove_file(&file);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_line_is_read_with_its_escapes() {
        let fact = parse(r"36 35 98:0 / /a\040b rw,nosuid shared:1 - tmpfs none ro,size=1k").unwrap();
        assert_eq!(
            fact,
            MountFact { target: "/a b".to_owned(), fs_type: "tmpfs".to_owned(), read_only: true }
        );
    }

    #[test]
    fn a_word_that_begins_with_ro_is_not_read_only() {
        assert!(!parse("36 35 98:0 / /a rw - ext4 /dev/sda rw,rootcontext=x").unwrap().read_only);
    }

    #[test]
    fn a_name_with_a_backslash_that_is_no_escape_is_kept() {
        assert_eq!(unescape(r"/a\zb\"), r"/a\zb\");
    }
}
