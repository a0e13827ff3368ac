//! The sample repository: two small shell scripts, one of them wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_core::with_causes;
use cofferdam_runner::Git;

use crate::exit::ExitCode;
use crate::failure::Failure;

const FILES: [(&str, &str); 3] = [
    ("slug.sh", include_str!("sample/slug.sh")),
    ("test.sh", include_str!("sample/test.sh")),
    ("README.md", include_str!("sample/README.md")),
];

/// Every file of a folder, `.git` included: its mode and its content, or a symlink's target.
pub(crate) type Snapshot = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Makes the repository, with one commit.
pub(crate) fn create(folder: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::internal("the sample repository could not be made", &error);
    fs::create_dir(folder).map_err(failed)?;
    for (name, content) in FILES {
        fs::write(folder.join(name), content).map_err(failed)?;
    }
    git(folder, &["init", "--quiet", "--template=", "."])?;
    git(folder, &["add", "--all"])?;
    git(folder, &["commit", "--quiet", "--message=Add slug"])
}

/// Runs git with no configuration but ours: the caller's could sign commits or run hooks.
fn git(folder: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let name = arguments.first().copied().unwrap_or_default();
    let found = Git::of_this_process(None)
        .map_err(|error| Failure::new(ExitCode::Refused, with_causes(&error)).hint(error.remedy()))?;
    let output = found
        .command_without_environment()
        .args(["-c", "init.defaultBranch=main", "-c", "user.name=Demo", "-c", "user.email=demo@localhost"])
        .args(arguments)
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Failure::new(ExitCode::Failed, format!("git {name} failed: {said}")))
        }
        Err(error) => Err(Failure::internal("git could not be started", &error)),
    }
}

/// Takes down what a folder holds.
pub(crate) fn snapshot(folder: &Path) -> io::Result<Snapshot> {
    let mut found = Snapshot::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(next) = waiting.pop() {
        let meta = next.symlink_metadata()?;
        let content = if meta.is_dir() {
            waiting.extend(
                fs::read_dir(&next)?.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?,
            );
            Vec::new()
        } else if meta.is_symlink() {
            fs::read_link(&next)?.into_os_string().into_vec()
        } else {
            fs::read(&next)?
        };
        found.insert(next, (meta.permissions().mode(), content));
    }
    Ok(found)
}

/// Whether the patch changes `slug.sh` alone, and the sample's test passes in a copy with it.
pub(crate) fn patch_mends(patch: &Path, copy: &Path) -> Result<bool, Failure> {
    let text =
        fs::read_to_string(patch).map_err(|error| Failure::internal("the diff could not be read", &error))?;
    let touched: Vec<&str> = text.lines().filter(|line| line.starts_with("diff --git ")).collect();
    if touched != ["diff --git a/slug.sh b/slug.sh"] {
        return Ok(false);
    }
    create(copy)?;
    let patch = patch.to_string_lossy();
    git(copy, &["apply", &patch])?;
    let tested = Command::new("/bin/sh").arg("test.sh").current_dir(copy).stdout(Stdio::null()).status();
    tested
        .map(|status| status.success())
        .map_err(|error| Failure::internal("sh could not be started", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_fails_its_test_until_it_is_mended() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join("sample");
        create(&repository).unwrap();
        let before = snapshot(&repository).unwrap();
        assert!(before.contains_key(&repository.join(".git/HEAD")));
        let patch = folder.path().join("patch");
        fs::write(&patch, "").unwrap();
        assert!(!patch_mends(&patch, &folder.path().join("untouched")).unwrap());
        let text = "diff --git a/slug.sh b/slug.sh\n--- a/slug.sh\n+++ b/slug.sh\n@@ -3,3 +3,3 @@\n slug() {\n\
                    -\tprintf '%s' \"$1\" | tr 'A-Z ' 'a-z_'\n+\tprintf '%s' \"$1\" | tr 'A-Z ' 'a-z-'\n }\n";
        fs::write(&patch, text).unwrap();
        assert!(patch_mends(&patch, &folder.path().join("mended")).unwrap());
        assert_eq!(snapshot(&repository).unwrap(), before);
    }
}
