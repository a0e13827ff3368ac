//! A folder's content as a value, to compare byte for byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every path below a folder with its kind, mode and content.
pub type Tree = BTreeMap<PathBuf, (String, u32, Vec<u8>)>;

/// What is below a folder. `skip` names entries of the top that are left out.
///
/// # Panics
/// If something cannot be read.
#[must_use]
pub fn tree_of(root: &Path, skip: &[&str]) -> Tree {
    let mut tree = Tree::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.strip_prefix(root).expect("it is below").to_owned();
            if skip.iter().any(|skipped| name.as_os_str() == *skipped) {
                continue;
            }
            let found = path.symlink_metadata().expect("it is there");
            let mode = found.permissions().mode();
            let (kind, content) = if found.is_symlink() {
                let target = fs::read_link(&path).expect("a link");
                ("link", std::os::unix::ffi::OsStringExt::into_vec(target.into_os_string()))
            } else if found.is_dir() {
                open.push(path);
                ("folder", Vec::new())
            } else {
                ("file", fs::read(&path).expect("a readable file"))
            };
            tree.insert(name, (kind.to_owned(), mode, content));
        }
    }
    tree
}
