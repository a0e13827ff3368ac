//! The file that a phase's agent writes its output to, read from hostile hands.
//!
//! The agent may put anything in its place: a link to what only the worker can read, a pipe that never ends, a folder, a
//! file larger than memory or nested deeper than the stack; and it may remove or replace the folder itself. So the folder
//! is made by us under a name that nobody can guess, held open, and everything in it is opened through that.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cofferdam_core::{MOST_PHASE_BYTES, Phase};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::Value;

/// Where the agent of one try writes its output.
pub(crate) struct PhaseOutputFile {
    folder: OwnedFd,
    name: String,
    path: PathBuf,
}

/// Why there is no output. The texts are what the next try is told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoOutput {
    /// Nothing is there.
    #[error("there is no output: write it to the file {0}")]
    Missing(String),
    /// What is there is not an output.
    #[error("the output could not be read: {0}")]
    Unreadable(String),
}

impl PhaseOutputFile {
    /// Makes a folder for it, which only this user can enter.
    pub(crate) fn make(parent: &Path, phase: Phase, number: u32) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let random = u64::from_ne_bytes(random);
        let path = parent.join(format!("cofferdam-spec-{phase}-{number}-{random:016x}"));
        // One that is there already was not made by us, and is an error.
        mkdirat(CWD, &path, Mode::RWXU)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = open(&path, flags, Mode::empty())?;
        let name = format!("{phase}.json");
        Ok(Self { folder, path: path.join(&name), name })
    }

    /// The file, as the agent is told.
    pub(crate) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// What is in it.
    pub(crate) fn read(&self) -> Result<Value, NoOutput> {
        let unreadable = |why: String| NoOutput::Unreadable(why);
        // Opening a pipe that nobody writes to would wait for ever, and following a link would leave the folder.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &self.name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(NoOutput::Missing(self.path())),
            Err(Errno::LOOP) => return Err(unreadable("it is a link; write a regular file".to_owned())),
            Err(error) => return Err(unreadable(io::Error::from(error).to_string())),
        };
        // The descriptor is looked at and not the name, which may lead somewhere else by now.
        let found = fstat(&file).map_err(|error| unreadable(io::Error::from(error).to_string()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(unreadable("it is not a regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        // Its size may change while it is read, so that only what was read counts.
        let most = MOST_PHASE_BYTES as u64;
        let read = File::from(file).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() as u64 > most {
            return Err(unreadable(format!("it is larger than {most} bytes")));
        }
        // The parser gives up at 128 levels.
        serde_json::from_slice(&bytes).map_err(|error| unreadable(format!("it is not JSON: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use serde_json::json;

    use super::*;

    fn made(parent: &Path) -> (PhaseOutputFile, PathBuf) {
        let output = PhaseOutputFile::make(parent, Phase::Design, 2).unwrap();
        let path = PathBuf::from(output.path());
        (output, path)
    }

    /// What is said of a file that cannot be an output.
    fn refused(put: impl FnOnce(&Path)) -> String {
        let parent = tempfile::tempdir().unwrap();
        let (output, path) = made(parent.path());
        put(&path);
        match output.read() {
            Err(NoOutput::Unreadable(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_agent_wrote_is_read_and_its_folder_is_for_its_user_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (output, path) = made(parent.path());
        assert!(path.ends_with("design.json"), "{}", path.display());
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(output.read(), Err(NoOutput::Missing(output.path())));
        fs::write(&path, "\n{\"a\": [1]}\n").unwrap();
        assert_eq!(output.read(), Ok(json!({ "a": [1] })));
        let (other, _) = made(parent.path());
        assert_ne!(other.path(), output.path(), "each try has a folder of its own");
    }

    #[test]
    fn a_link_is_not_followed() {
        let why = refused(|path| {
            let secret = path.with_file_name("secret.json");
            fs::write(&secret, "{}").unwrap();
            symlink(&secret, path).unwrap();
        });
        assert!(why.contains("link"), "{why}");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let why = refused(|path| rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap());
        assert!(why.contains("regular"), "{why}");
        let why = refused(|path| fs::create_dir(path).unwrap());
        assert!(why.contains("regular"), "{why}");
        refused(|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()));
    }

    #[test]
    fn what_is_too_large_or_too_deep_or_not_json_is_refused() {
        // Its size costs the disk nothing, and reading it would take the worker's memory.
        let why = refused(|path| File::create(path).unwrap().set_len(1 << 40).unwrap());
        assert!(why.contains("larger"), "{why}");
        let why = refused(|path| fs::write(path, "[".repeat(1 << 19)).unwrap());
        assert!(why.contains("recursion"), "{why}");
        let why = refused(|path| fs::write(path, b"\xff\xfe{").unwrap());
        assert!(why.contains("not JSON"), "{why}");
        let why = refused(|path| fs::write(path, "").unwrap());
        assert!(why.contains("not JSON"), "{why}");
    }

    #[test]
    fn the_largest_output_is_read() {
        let parent = tempfile::tempdir().unwrap();
        let (output, path) = made(parent.path());
        let text = "x".repeat(MOST_PHASE_BYTES - 2);
        fs::write(&path, format!("\"{text}\"")).unwrap();
        assert_eq!(output.read(), Ok(json!(text)));
    }

    #[test]
    fn a_folder_that_was_removed_or_replaced_has_no_output() {
        let parent = tempfile::tempdir().unwrap();
        let (output, path) = made(parent.path());
        let folder = path.parent().unwrap();
        fs::rename(folder, parent.path().join("moved")).unwrap();
        let elsewhere = parent.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("design.json"), "{}").unwrap();
        symlink(&elsewhere, folder).unwrap();
        assert_eq!(output.read(), Err(NoOutput::Missing(output.path())));
        let (output, path) = made(parent.path());
        fs::remove_dir(path.parent().unwrap()).unwrap();
        assert_eq!(output.read(), Err(NoOutput::Missing(output.path())));
    }

    #[test]
    fn a_file_that_is_swapped_again_and_again_is_read_as_one_of_both_or_refused() {
        let parent = tempfile::tempdir().unwrap();
        let (output, path) = made(parent.path());
        let spare = path.with_file_name("spare");
        fs::write(&path, "{\"mine\":true}").unwrap();
        std::thread::scope(|scope| {
            let swapping = scope.spawn(|| {
                for round in 0..2_000 {
                    let _ = fs::remove_file(&spare);
                    if round % 2 == 0 {
                        symlink("/etc/hostname", &spare).unwrap();
                    } else {
                        fs::write(&spare, "{\"mine\":true}").unwrap();
                    }
                    fs::rename(&spare, &path).unwrap();
                }
            });
            while !swapping.is_finished() {
                match output.read() {
                    Ok(read) => assert_eq!(read, json!({ "mine": true })),
                    Err(NoOutput::Unreadable(why)) => assert!(why.contains("link"), "{why}"),
                    Err(missing @ NoOutput::Missing(_)) => panic!("{missing}"),
                }
            }
        });
    }
}
