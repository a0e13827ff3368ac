//! Names that git refuses to put into a work tree, because some file system takes them for `.git`.
//! A patch with one of them could not be applied at all, so they are left out of it and reported.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a file system could take this name for `.git`: other case, the short name of NTFS and its
/// streams, trailing dots and spaces, or characters that HFS+ ignores.
pub(super) fn is_git_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    // A backslash separates folders on NTFS.
    if bytes.split(|&b| b == b'\\').any(is_ntfs_git) {
        return true;
    }
    let visible: String = name.to_string_lossy().chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    visible.eq_ignore_ascii_case(".git")
}

fn is_ntfs_git(name: &[u8]) -> bool {
    let name = name.split(|&b| b == b':').next().unwrap_or_default();
    let end = name.iter().rposition(|b| !matches!(b, b'.' | b' ')).map_or(0, |last| last + 1);
    [&b".git"[..], b"git~1"].iter().any(|git| name[..end].eq_ignore_ascii_case(git))
}

fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Git refuses `.gitmodules` as a link, since it would read settings through it.
pub(super) fn is_refused_as_link(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".gitmodules") || name.eq_ignore_ascii_case("gitmod~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguises_of_git_are_recognised() {
        for name in
            [".git", ".GIT", "git~1", "GIT~1", ".git.", ".git ", ".git::$INDEX", ".g\u{200c}it", "a\\.git"]
        {
            assert!(is_git_name(OsStr::new(name)), "{name:?}");
        }
        for name in [".gitignore", "git", ".github", "git~2", ".gitattributes", "x.git"] {
            assert!(!is_git_name(OsStr::new(name)), "{name:?}");
        }
    }
}
