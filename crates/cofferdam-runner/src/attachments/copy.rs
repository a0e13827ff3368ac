//! Keeps a checked file among what a run leaves.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Refused;

/// The longest name of a copy, without its number.
const LONGEST_NAME: usize = 100;

/// Copies at most `most` bytes of an open file; one that has grown meanwhile is refused.
pub(super) fn copy(
    file: File,
    relative: &Path,
    number: usize,
    into: &Path,
    most: u64,
) -> Result<(PathBuf, u64), Refused> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(into)?;
    let path = into.join(format!("{number:02}-{}", safe_name(relative)));
    // Made again after a crash; a link in its place would be somebody else's doing, and is removed and not followed.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let copied = io::copy(&mut file.take(most.saturating_add(1)), &mut target)?;
    if copied > most {
        fs::remove_file(&path)?;
        return Err(Refused::TooLarge);
    }
    target.sync_all()?;
    Ok((path, copied))
}

/// The file's own name, as far as it can mean nothing to a shell, a terminal or a browser.
fn safe_name(relative: &Path) -> String {
    let name = relative.file_name().unwrap_or_default().to_string_lossy();
    let safe: String =
        name.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    let end = (0..=LONGEST_NAME.min(safe.len())).rev().find(|&at| safe.is_char_boundary(at)).unwrap_or(0);
    // The end of a name says what kind of file it is.
    match (safe.len() > end, Path::new(&safe).extension().and_then(|extension| extension.to_str())) {
        (true, Some(extension)) if extension.len() <= 10 => format!("{}.{extension}", &safe[..end]),
        _ => safe[..end].to_owned(),
    }
}
