//! Handing a patch over: to stdout, to a file, or into JSON. Its content is the agent's, hence hostile.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{sanitize, terminal};

/// Prints a patch: byte for byte to a program, escaped to a person.
pub(crate) fn print(patch: &Path) -> Result<(), Failure> {
    let unreadable = |error| Failure::internal("the diff could not be read", &error);
    if terminal::stdout_is_terminal() {
        let bytes = std::fs::read(patch).map_err(unreadable)?;
        let mut out = io::stdout().lock();
        return terminal::stdout_result(sanitize::write_escaped(&mut out, &bytes).and_then(|()| out.flush()));
    }
    let mut file = File::open(patch).map_err(unreadable)?;
    let mut out = io::stdout().lock();
    terminal::stdout_result(io::copy(&mut file, &mut out).and_then(|_| out.flush()))
}

/// Writes a patch to a file of the caller's, whole or not at all.
pub(crate) fn save(patch: &Path, target: &Path) -> Result<(), Failure> {
    save_atomically(patch, target).map_err(|error| {
        let kept = patch.display();
        Failure::new(ExitCode::Failed, format!("{} could not be written: {error}", target.display()))
            .hint(format!("the diff is kept at {kept}"))
    })
}

fn save_atomically(patch: &Path, target: &Path) -> io::Result<()> {
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::copy(&mut File::open(patch)?, &mut file)?;
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|error| error.error)?;
    Ok(())
}

/// Adds a patch to a JSON object: as text under `diff`, and as `diff_base64` where it is not UTF-8.
pub(crate) fn add_to_json(object: &mut Map<String, Value>, patch: Option<&Path>) -> Result<(), Failure> {
    let Some(patch) = patch else {
        object.insert("diff".to_owned(), Value::Null);
        return Ok(());
    };
    let bytes =
        std::fs::read(patch).map_err(|error| Failure::internal("the diff could not be read", &error))?;
    match String::from_utf8(bytes) {
        Ok(text) => {
            object.insert("diff".to_owned(), text.into());
        }
        Err(error) => {
            let bytes = error.into_bytes();
            object.insert("diff".to_owned(), String::from_utf8_lossy(&bytes).into_owned().into());
            object.insert("diff_base64".to_owned(), STANDARD.encode(&bytes).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_patch_is_byte_identical_and_readable_by_others() {
        let folder = tempfile::tempdir().unwrap();
        let (patch, target) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&patch, b"\xff\0\n").unwrap();
        std::fs::write(&target, "old").unwrap();
        save(&patch, &target).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"\xff\0\n");
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_patch_that_is_not_text_is_carried_in_base64() {
        let folder = tempfile::tempdir().unwrap();
        let patch = folder.path().join("a");
        std::fs::write(&patch, b"+\xff\n").unwrap();
        let mut object = Map::new();
        add_to_json(&mut object, Some(&patch)).unwrap();
        assert_eq!(object["diff_base64"], "K/8K");
        std::fs::write(&patch, "+a\n").unwrap();
        let mut object = Map::new();
        add_to_json(&mut object, Some(&patch)).unwrap();
        assert_eq!(Value::Object(object), serde_json::json!({"diff": "+a\n"}));
    }
}
