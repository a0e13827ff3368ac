//! Reads settings files. The repository's own is read as if an enemy had put it there.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::exit::ExitCode;
use crate::failure::Failure;

/// No settings file is as large.
const MOST_BYTES: u64 = 256 << 10;

/// The settings file of a repository, read once: what was hashed is what takes effect.
#[derive(Debug, Clone)]
pub(crate) struct LocalFile {
    /// Its path, without symlinks.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) text: String,
    /// The SHA-256 of that, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// The text of the state folder's settings. That folder is the caller's own, so that a symlink in it is too.
pub(super) fn global_text(path: &Path) -> Result<Option<String>, Failure> {
    // A FIFO would hang every command otherwise.
    let opened = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
    match opened {
        Ok(file) => read(file, path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(super::cannot_be_used(path, &error.to_string())),
    }
}

/// The text of a settings file that the caller names, of whichever program; or why there is none.
pub(crate) fn foreign_text(path: &Path) -> Result<String, String> {
    match global_text(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err("there is no such file".to_owned()),
        Err(failure) => Err(failure.message().to_owned()),
    }
}

/// The settings file in a folder, unless that is the state folder itself.
///
/// A symlink, in the place of the file or of its folder, is refused: it would be another file under a name that was
/// trusted. So is everything but a plain file. Whose it is does not matter: it is hostile until its content was
/// trusted, and whoever changes it makes it hostile again.
pub(crate) fn local_file(folder: &Path, state: Option<&Path>) -> Result<Option<LocalFile>, Failure> {
    let Ok(folder) = folder.canonicalize() else { return Ok(None) };
    let own = folder.join(".cofferdam");
    let path = own.join("settings.json");
    let Some(own) = open_folder(&own)? else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&own, "settings.json", flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refuse(&path, "it is a symlink")),
        Err(errno) => return Err(refuse(&path, &errno.to_string())),
    };
    if is_same(&File::from(own), state) {
        return Ok(None);
    }
    let text = read(file, &path)?;
    let sha256 = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(LocalFile { path, text, sha256 }))
}

fn open_folder(path: &Path) -> Result<Option<OwnedFd>, Failure> {
    match open(path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => Err(refuse(path, "it is a symlink")),
            Ok(found) if !found.is_dir() => Ok(None),
            _ => Err(refuse(path, &errno.to_string())),
        },
    }
}

/// Whether a folder is the state folder, under whatever name.
fn is_same(folder: &File, state: Option<&Path>) -> bool {
    let state = state.and_then(|state| state.metadata().ok());
    match (folder.metadata(), state) {
        (Ok(own), Some(state)) => (own.dev(), own.ino()) == (state.dev(), state.ino()),
        _ => false,
    }
}

fn read(file: File, path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| refuse(path, &error.to_string());
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(refuse(path, "it is not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(refuse(path, "it is larger than 256 KiB"));
    }
    String::from_utf8(bytes).map_err(|_| refuse(path, "it is not valid UTF-8"))
}

fn refuse(path: &Path, why: &str) -> Failure {
    Failure::new(ExitCode::Refused, format!("the settings in {} cannot be used: {why}", path.display()))
        .hint("put a plain file there, or move it away")
}
