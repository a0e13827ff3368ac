//! Writes files of the state folder so that no reader sees half of one and no writer undoes another's change.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cofferdam_core::{Mode, SettingsError};
use cofferdam_runner::Home;
use rustix::fs::{FlockOperation, flock};

use super::{cannot_be_used, files};
use crate::failure::Failure;

/// Sets `sandbox.mode` in the settings of the state folder.
pub(crate) fn set_mode(home: &Home, mode: Mode) -> Result<(), Failure> {
    change(home, |text| cofferdam_core::set_mode(text, mode))
}

/// Changes the settings of the state folder. What cannot be read is not written over.
pub(crate) fn change(
    home: &Home,
    edit: impl FnOnce(&str) -> Result<String, SettingsError>,
) -> Result<(), Failure> {
    let path = home.root().join("settings.json");
    let _lock = lock(home, "settings.lock")?;
    let text = files::global_text(&path)?.unwrap_or_default();
    let changed = edit(&text).map_err(|error| cannot_be_used(&path, &error.to_string()))?;
    if changed == text {
        return Ok(());
    }
    // Some keep their settings elsewhere and link to them; the link stays.
    let target = path.canonicalize().unwrap_or(path);
    let mode = target.metadata().map_or(0o600, |found| found.permissions().mode() & 0o777);
    replace(&target, changed.as_bytes(), mode)
}

/// Waits for whoever changes the same file. The kernel drops the lock with its holder.
pub(super) fn lock(home: &Home, name: &str) -> Result<File, Failure> {
    let path = home.root().join(name);
    let locked = || -> std::io::Result<File> {
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    locked().map_err(|error| Failure::internal(&format!("{} cannot be locked", path.display()), &error))
}

/// Puts a whole file in the place of another.
pub(super) fn replace(path: &Path, content: &[u8], mode: u32) -> Result<(), Failure> {
    let written = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::Builder::new()
            .prefix(".cofferdam-")
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        file.write_all(content)?;
        // A mask of the caller's may have taken bits away.
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    written().map_err(|error| Failure::internal(&format!("{} cannot be written", path.display()), &error))
}
