//! Whether a state folder is the caller's own.
//!
//! What is in it decides what is run and who is trusted: settings, keys, the record. The attack: another user makes the
//! folder before its owner does, or may write into it, or puts another one in its place, and leaves a `settings.json` that
//! asks for no sandbox. So it must belong to whoever asks, root included; nobody else may write to it; and
//! nobody else may change a link or a folder on the way to it ([`ownership`](crate::ownership)), because everything
//! that follows is done by its path.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::ownership::{self, Doubt};

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// It is somebody else's.
    #[error("it belongs to user {owner}, and you are user {caller}")]
    NotOwn {
        /// Whose it is.
        owner: u32,
        /// Who asks.
        caller: u32,
    },
    /// Somebody else may write to it.
    #[error("others can write to it (mode {mode:04o})")]
    Writable {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else may put another in its place.
    #[error("{} {how}, who could put another folder in its place", path.display())]
    Replaceable {
        /// The folder or link on the way that could be changed.
        path: PathBuf,
        /// By whom.
        how: String,
    },
    /// It could not be made or looked at.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl HomeError {
    /// What to type.
    #[must_use]
    pub fn remedy(&self) -> String {
        const ANOTHER: &str = "export COFFERDAM_HOME=/a/folder/of/yours";
        match self {
            Self::NotOwn { owner, caller: 0 } => format!(
                "run it as user {owner} and not with sudo, or give root a folder of its own: \
                 `sudo COFFERDAM_HOME=/root/.cofferdam cofferdam …`"
            ),
            Self::NotOwn { owner, .. } => format!("run it as user {owner}, or {ANOTHER}"),
            Self::Writable { path, .. } => format!(
                "if nobody else has changed anything in it, `chmod 700 '{}'`; else {ANOTHER}",
                path.display()
            ),
            Self::Replaceable { path, .. } => {
                format!("{ANOTHER}, or look at `ls -ld '{}'` and make it yours alone", path.display())
            }
            Self::Io(_) => ANOTHER.to_owned(),
        }
    }
}

impl From<Doubt> for HomeError {
    fn from(doubt: Doubt) -> Self {
        match doubt {
            Doubt::Changeable { path, how } => Self::Replaceable { path, how },
            Doubt::Unreadable { source, .. } => Self::Io(source),
        }
    }
}

/// Checks what there is of a path, before the rest is made: nothing is left in a folder of somebody else's.
pub(super) fn check_above(root: &Path) -> Result<(), HomeError> {
    if root.symlink_metadata().is_ok() {
        return check(root).map(drop);
    }
    let there = root.ancestors().skip(1).find(|path| path.symlink_metadata().is_ok());
    let way = ownership::walk(there.unwrap_or(Path::new("/")))?;
    Ok(way.passed.iter().try_for_each(|passed| ownership::check(passed))?)
}

/// Checks a folder and the way to it; the folder's real path, and its descriptor.
pub(super) fn check(root: &Path) -> Result<(PathBuf, File), HomeError> {
    let way = ownership::walk(root)?;
    let mut on_the_way = way.passed.iter().filter(|passed| **passed != way.real);
    on_the_way.try_for_each(|passed| ownership::check(passed))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(&way.real, flags, Mode::empty()) {
        Ok(folder) => File::from(folder),
        // Closed to us, so most likely somebody else's: say so, if it is.
        Err(error) => {
            check_owner(&way.real.symlink_metadata()?, &way.real)?;
            return Err(HomeError::Io(error.into()));
        }
    };
    check_owner(&folder.metadata()?, &way.real)?;
    Ok((way.real, folder))
}

fn check_owner(found: &std::fs::Metadata, path: &Path) -> Result<(), HomeError> {
    // With an access list, the bits of the group are the most that anybody on it may do.
    const OTHERS_WRITE: u32 = 0o022;
    let caller = rustix::process::geteuid().as_raw();
    if found.uid() != caller {
        return Err(HomeError::NotOwn { owner: found.uid(), caller });
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS_WRITE != 0 {
        return Err(HomeError::Writable { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Checks a folder that is there, and closes it to the eyes of others too. Its real path.
pub(super) fn close(root: &Path) -> Result<PathBuf, HomeError> {
    let (real, folder) = check(root)?;
    if folder.metadata()?.mode() & 0o777 != 0o700 {
        // Through the descriptor that was checked.
        rustix::fs::fchmod(&folder, Mode::RWXU).map_err(io::Error::from)?;
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;
    use crate::home::Home;

    fn folder_with_mode(path: &Path, mode: u32) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode_of(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_state_folder_that_others_can_write_is_refused_and_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        for mode in [0o777, 0o1777, 0o770, 0o720, 0o702] {
            let state = place.path().join(format!("{mode:o}"));
            folder_with_mode(&state, mode);
            let link = place.path().join(format!("link-{mode:o}"));
            symlink(&state, &link).unwrap();
            for path in [&state, &link] {
                let error = Home::open(path).unwrap_err();
                assert!(matches!(error, HomeError::Writable { .. }), "{mode:o}: {error}");
                assert!(error.remedy().contains("chmod 700 '"), "{}", error.remedy());
                assert!(Home::check(path).is_err());
            }
            assert_eq!(mode_of(&state), mode, "its mode stays");
            assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "nothing is made in it");
        }
    }

    #[test]
    fn a_state_folder_of_somebody_else_is_refused_and_left_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        folder_with_mode(&state, 0o700);
        if chown(&state, Some(12345), Some(12345)).is_err() {
            println!("skipped: only root can give a folder away");
            return;
        }
        symlink(&state, place.path().join("link")).unwrap();
        for path in [&state, &place.path().join("link")] {
            let error = Home::open(path).unwrap_err();
            assert!(matches!(error, HomeError::NotOwn { owner: 12345, caller: 0 }), "{error}");
            assert!(error.remedy().contains("COFFERDAM_HOME=/root/.cofferdam"), "{}", error.remedy());
            assert!(Home::check(path).is_err());
        }
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "nothing is made in it");
        // With sudo, root may have the home of another.
        let error = Home::open(&state.join("deep/.cofferdam")).unwrap_err();
        assert!(matches!(&error, HomeError::Replaceable { path, .. } if path.ends_with("state")), "{error}");
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "nothing is made in it");
    }

    #[test]
    fn a_state_folder_that_others_can_replace_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let shared = place.path().join("shared");
        folder_with_mode(&shared, 0o777);
        let error = Home::open(&shared.join("state")).unwrap_err();
        assert!(matches!(error, HomeError::Replaceable { .. }), "{error}");
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "nothing is made in it");
        folder_with_mode(&shared.join("state"), 0o700);
        assert!(matches!(Home::open(&shared.join("state")), Err(HomeError::Replaceable { .. })));
        // Where nobody may touch what is another's, as in `/tmp`, it is the caller's alone.
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        Home::open(&shared.join("state")).unwrap();
    }

    #[test]
    fn a_state_folder_of_ones_own_is_closed_to_others_and_may_be_behind_a_link() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().join("real");
        folder_with_mode(&real, 0o755);
        symlink("real", place.path().join("link")).unwrap();
        let home = Home::open(&place.path().join("link")).unwrap();
        assert_eq!(home.root(), real.canonicalize().unwrap());
        assert_eq!(mode_of(&real), 0o700);
        Home::check(&place.path().join("link")).unwrap();
        Home::check(&place.path().join("nowhere")).unwrap();
        assert!(!place.path().join("nowhere").exists());
        let new = place.path().join("new/deep");
        Home::open(&new).unwrap();
        assert_eq!(mode_of(&new), 0o700);
    }
}
