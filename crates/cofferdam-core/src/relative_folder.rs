//! A folder of the workspace that the agent starts in.

use std::path::{Component, Path};

use crate::text::checked_text;
use crate::value::ValueError;

checked_text! {
    /// A folder below the workspace's root: relative, and without a step upwards, `.` or doubled slashes. Whether it is
    /// there, and whether a link in it leads elsewhere, is looked at when the workspace is.
    RelativeFolder: relative_folder => ValueError;
}

impl RelativeFolder {
    /// More than the kernel takes in one path.
    const LONGEST: usize = 1024;

    /// Its path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }
}

fn relative_folder(text: &str) -> Result<String, ValueError> {
    let hint = "type a path below the repository's root, such as `services/api`";
    let refuse = |problem| Err(ValueError::new(text, problem, hint));
    if text.chars().any(char::is_control) {
        return refuse("holds a control character");
    }
    if text.len() > RelativeFolder::LONGEST {
        return refuse("is too long for a folder");
    }
    let mut names = Vec::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => names.push(name.to_str().unwrap_or_default()),
            Component::CurDir => {}
            Component::ParentDir => return refuse("leads upwards"),
            Component::RootDir | Component::Prefix(_) => return refuse("is not relative"),
        }
    }
    match names.is_empty() {
        true => refuse("is not a folder below the root"),
        false => Ok(names.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_written_in_one_way() {
        for text in ["a/b", "./a/b", "a//b/", "a/./b"] {
            assert_eq!(text.parse::<RelativeFolder>().unwrap().as_path(), Path::new("a/b"));
        }
    }

    #[test]
    fn nothing_leads_out_of_the_workspace() {
        for text in ["", ".", "/", "/etc", "..", "a/../..", "a/..", "a\0b", "a\nb", &"a/".repeat(600)] {
            assert!(text.parse::<RelativeFolder>().is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<RelativeFolder>("\"../x\"").is_err());
    }
}
