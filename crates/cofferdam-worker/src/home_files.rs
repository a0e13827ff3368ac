//! What an agent's CLI looks for in its home. The worker writes it, because the worker is who the agent is: whatever
//! the backend, the files have the right owner, and nothing of the caller's home is mounted for them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cofferdam_agent::HomeFile;

/// Why the agent's home is not as its CLI needs it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HomeError {
    /// There is nowhere to write to.
    #[error("the agent's environment names no home")]
    NoHome,
    /// It could not be written.
    #[error("failed to write {} into the agent's home: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Writes the files where the agent's CLI will look for them, for nobody but its user.
pub(crate) fn write(files: &[HomeFile], env: &BTreeMap<String, String>) -> Result<(), HomeError> {
    for file in files {
        let path = place(file, env).ok_or(HomeError::NoHome)?;
        write_one(&path, &file.content).map_err(|source| HomeError::Write { path, source })?;
    }
    Ok(())
}

fn place(file: &HomeFile, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let set = |name: &str| env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set(file.variable).or_else(|| Some(set("HOME")?.join(file.folder)))?;
    Some(folder.join(file.name))
}

fn write_one(path: &Path, content: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    // A file that is there may be a link to another one.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn file(variable: &'static str) -> HomeFile {
        HomeFile { variable, folder: ".cli", name: "sub/auth.json", content: "{}".to_owned() }
    }

    fn env(pairs: &[(&str, &Path)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, path)| ((*name).to_owned(), path.display().to_string())).collect()
    }

    #[test]
    fn a_file_is_where_its_variable_says_and_else_in_the_home_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (home, own) = (folder.path().join("home"), folder.path().join("own"));
        let env = env(&[("HOME", &home), ("CLI_HOME", &own)]);
        write(&[file("CLI_HOME"), file("NOT_SET")], &env).unwrap();
        for path in [own.join("sub/auth.json"), home.join(".cli/sub/auth.json")] {
            assert_eq!(fs::read(&path).unwrap(), b"{}");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            let parent = path.parent().unwrap().metadata().unwrap();
            assert_eq!(parent.permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join(".cli/sub/auth.json"), folder.path().join("other"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&other, "untouched").unwrap();
        symlink(&other, &path).unwrap();
        write(&[file("NOT_SET")], &env(&[("HOME", folder.path())])).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"untouched");
        assert_eq!(fs::read(&path).unwrap(), b"{}");
    }

    #[test]
    fn without_a_home_nothing_is_written_and_that_is_said() {
        let error = write(&[file("NOT_SET")], &BTreeMap::new()).unwrap_err();
        assert_eq!(error.to_string(), "the agent's environment names no home");
    }
}
