//! Copies a work tree, for where an overlay cannot be used, together with the base that the diff needs.

use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Stat, Timespec, Timestamps};

use super::veil::Veil;
use super::{Error, Manifest, Progress, RepositoryOwner};
use crate::confined::{ConfinedFolder, kind_of};
use crate::raw_path::escape;

/// Copies folders. Files are cloned where the file system can. **Never hard links**: an agent could write
/// to the original through them.
pub(super) struct Copier<'a, 'b> {
    /// Where the second copy goes that the diff is taken against; `None` for git folders.
    pub(super) base: Option<PathBuf>,
    /// What each copied file is.
    pub(super) manifest: Manifest,
    /// What could not be copied.
    pub(super) warnings: Vec<String>,
    owner: RepositoryOwner,
    progress: &'a mut Progress<'b>,
    clones: bool,
    copied: u64,
}

/// How often progress is told.
const PROGRESS_EVERY: u64 = 2000;

impl<'a, 'b> Copier<'a, 'b> {
    pub(super) fn new(base: Option<PathBuf>, owner: RepositoryOwner, progress: &'a mut Progress<'b>) -> Self {
        let manifest = Manifest::default();
        Self { base, manifest, warnings: Vec::new(), owner, progress, clones: true, copied: 0 }
    }

    /// Copies a folder as the veil shows it. Names in `skip` are left out at the top.
    pub(super) fn copy(&mut self, from: &Path, to: &Path, veil: &Veil, skip: &[&str]) -> Result<(), Error> {
        let source = ConfinedFolder::open_exactly(from).map_err(|error| Error::reading(from, error))?;
        let mut folders = vec![PathBuf::new()];
        let mut modes = Vec::new();
        while let Some(folder) = folders.pop() {
            let read = |error| Error::reading(&from.join(&folder), error);
            let open = source.folder(&folder).map_err(read)?;
            self.make_folders(to, &folder)?;
            for name in open.list().map_err(read)? {
                let path = folder.join(&name);
                let is_skipped = folder.as_os_str().is_empty() && skip.iter().any(|skipped| name == *skipped);
                if is_skipped || is_example(&path) {
                    continue;
                }
                let Some(stat) = open.stat(&name).map_err(read)? else { continue };
                match (veil.entry(&path), kind_of(&stat)) {
                    (Some(None), _) => {}
                    (Some(Some(content)), _) => self.put(&path, to, content, &stat)?,
                    (None, _) if !self.owner.may_read(&stat) => self.warnings.push(format!(
                        "`{}` cannot be read by the repository's owner and was not copied",
                        escape(&path)
                    )),
                    (None, FileType::Directory) => {
                        modes.push((to.join(&path), stat.st_mode));
                        folders.push(path);
                    }
                    (None, kind) => self.copy_file(&source, from, to, &path, kind, &stat)?,
                }
            }
        }
        // Last and from the inside out, since a folder may be closed to writing.
        for (folder, mode) in modes.into_iter().rev() {
            let closed = Permissions::from_mode(mode & 0o777);
            fs::set_permissions(&folder, closed).map_err(|error| Error::writing(&folder, error))?;
        }
        Ok(())
    }

    fn make_folders(&mut self, to: &Path, folder: &Path) -> Result<(), Error> {
        let in_git = is_in_git(folder);
        let base = self.base.as_ref().filter(|_| !in_git).map(|base| base.join(folder));
        for path in std::iter::once(to.join(folder)).chain(base) {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(|error| Error::writing(&path, error))?,
            }
        }
        if in_git { self.note(folder, &to.join(folder), true) } else { Ok(()) }
    }

    fn copy_file(
        &mut self,
        source: &ConfinedFolder,
        from: &Path,
        to: &Path,
        path: &Path,
        kind: FileType,
        stat: &Stat,
    ) -> Result<(), Error> {
        self.tell(1)?;
        let read = |error| Error::reading(&from.join(path), error);
        match kind {
            FileType::RegularFile => {
                let original = source.file(path).map_err(read)?;
                for target in self.targets(path, to) {
                    let write = |error| Error::writing(&target, error);
                    let copy = create(&target).map_err(write)?;
                    self.fill(&original, &copy).map_err(write)?;
                    finish(&copy, stat).map_err(write)?;
                }
            }
            FileType::Symlink => {
                let link = source.link_target(path).map_err(read)?;
                for target in self.targets(path, to) {
                    make_link(&link, &target, stat).map_err(|error| Error::writing(&target, error))?;
                }
            }
            _ => {
                self.warnings
                    .push(format!("`{}` is no file, folder or link and was not copied", escape(path)));
                return Ok(());
            }
        }
        self.note(path, &to.join(path), is_in_git(path))
    }

    fn put(&mut self, path: &Path, to: &Path, content: &[u8], stat: &Stat) -> Result<(), Error> {
        for target in self.targets(path, to) {
            let write = |error| Error::writing(&target, error);
            let copy = create(&target).map_err(write)?;
            io::Write::write_all(&mut &copy, content).map_err(write)?;
            finish(&copy, stat).map_err(write)?;
        }
        self.note(path, &to.join(path), is_in_git(path))
    }

    /// The copy and, unless it belongs to git, its second copy.
    fn targets(&self, path: &Path, to: &Path) -> Vec<PathBuf> {
        let base = self.base.as_ref().filter(|_| !is_in_git(path)).map(|base| base.join(path));
        std::iter::once(to.join(path)).chain(base).collect()
    }

    /// Records what a copy is. Of what belongs to git only the `.git` itself is recorded.
    fn note(&mut self, path: &Path, copy: &Path, in_git: bool) -> Result<(), Error> {
        if self.base.is_none() || (in_git && path.file_name().is_none_or(|name| name != ".git")) {
            return Ok(());
        }
        let stat = rustix::fs::statat(CWD, copy, AtFlags::SYMLINK_NOFOLLOW);
        self.manifest.insert(path.to_owned(), &stat.map_err(|error| Error::writing(copy, error.into()))?);
        Ok(())
    }

    fn fill(&mut self, original: &File, copy: &File) -> io::Result<()> {
        if self.clones {
            match rustix::fs::ioctl_ficlone(copy, original) {
                Ok(()) => return Ok(()),
                Err(error @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => {
                    return Err(error.into());
                }
                Err(_) => self.clones = false,
            }
        }
        io::Seek::rewind(&mut &*original)?;
        io::copy(&mut &*original, &mut &*copy).map(drop)
    }

    fn tell(&mut self, files: u64) -> Result<(), Error> {
        self.copied += files;
        if self.copied.is_multiple_of(PROGRESS_EVERY) {
            self.progress.tell(format!("copying: {} files", self.copied));
        }
        self.progress.check()
    }
}

fn create(target: &Path) -> io::Result<File> {
    // Something of that name can only be an earlier layer of the same copy.
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).mode(0o600).open(target)
}

/// Mode and time of the original. Bits that give a program its owner's rights are not copied.
fn finish(copy: &File, stat: &Stat) -> io::Result<()> {
    let modified = std::time::UNIX_EPOCH.checked_add(std::time::Duration::new(
        stat.st_mtime.max(0).unsigned_abs(),
        stat.st_mtime_nsec as u32,
    ));
    copy.set_times(FileTimes::new().set_modified(modified.unwrap_or(std::time::UNIX_EPOCH)))?;
    copy.set_permissions(Permissions::from_mode(stat.st_mode & 0o777))
}

fn make_link(link: &[u8], target: &Path, stat: &Stat) -> io::Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    rustix::fs::symlinkat(link, CWD, target)?;
    let time = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(rustix::fs::utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The examples of hooks that git puts into every repository. Git never runs them, and in a small repository they are
/// most of what would be copied.
fn is_example(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sample")
        && path.parent().is_some_and(|folder| folder.ends_with(".git/hooks"))
}

fn is_in_git(path: &Path) -> bool {
    path.iter().any(|name| name == ".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_hooks_are_told_from_hooks_and_from_files() {
        assert!(is_example(Path::new(".git/hooks/pre-commit.sample")));
        assert!(is_example(Path::new("nested/.git/hooks/update.sample")));
        for path in [
            ".git/hooks/pre-commit",
            "hooks/a.sample",
            ".git/a.sample",
            ".git/hooks/own/a.sample",
            "a.sample",
        ] {
            assert!(!is_example(Path::new(path)), "{path}");
        }
    }
}
