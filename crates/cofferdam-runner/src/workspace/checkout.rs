//! A pristine checkout per address, commit and branch: the lower layer of every workspace made from it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use cofferdam_core::RepoUrl;
use cofferdam_sandbox::remove_tree;
use sha2::{Digest, Sha256};

use super::kept::note_use;
use super::mirror::Mirror;
use super::refs::{Asked, Resolved, resolve};
use super::unfolded::unfolds_within;
use super::{CheckedOut, Error, Progress, Remote};
use crate::home::Home;
use crate::pristine_git;
use crate::raw_path::RawPath;

/// The checkout of a branch, tag or commit; without one of the remote's branch, if it is there, or of the default branch.
/// It is made once and then only read. The mirror's lock is held meanwhile, so two attempts never make the same one, and it
/// is noted in the workspace's own folder, so that nobody removes it.
pub(super) fn checkout(
    home: &Home,
    own: &Path,
    url: &RepoUrl,
    asked: Asked<'_>,
    remote: Remote<'_>,
    progress: &mut Progress<'_>,
) -> Result<(PathBuf, CheckedOut), Error> {
    let mirror = Mirror::fetch(home, url, asked.reference, remote, progress)?;
    let resolved = resolve(mirror.bare(), asked).map_err(|near| not_found(url, asked, near))?;
    let path = place_of(home, &mirror, &resolved)?;
    if path.exists() {
        return in_use(own, &mirror, path, &resolved);
    }
    if let Some(checked) = remote.checked {
        let fits = unfolds_within(mirror.bare(), &resolved.commit, checked.most_bytes);
        if !fits.map_err(|error| Error::reading(mirror.path(), error))? {
            return Err(checked.too_large(url));
        }
    }
    progress.tell(format!("checking out {}", &resolved.commit[..12.min(resolved.commit.len())]));
    put(&path, |partial| {
        make_git_folder(&mirror, &mirror.bare().refs().unwrap_or_default(), url, &resolved, partial)?;
        // Our own configuration, and no filter is defined in it: an attribute can name one and nothing runs.
        let mut command = pristine_git::command(&mirror.git, &partial.join(".git"));
        command
            .env("GIT_WORK_TREE", partial)
            .current_dir(partial)
            .args(["reset", "--hard", "--quiet", "HEAD"]);
        pristine_git::output(&mut command, "git reset").map(drop)
    })?;
    in_use(own, &mirror, path, &resolved)
}

/// What is said of a reference that is not there.
pub(super) fn not_found(url: &RepoUrl, asked: Asked<'_>, near: Vec<String>) -> Error {
    Error::RefNotFound { reference: asked.name().to_owned(), url: url.to_string(), near }
}

/// Where the checkout of a commit is, or is to be.
pub(super) fn place_of(home: &Home, mirror: &Mirror, resolved: &Resolved) -> Result<PathBuf, Error> {
    let folder = home.checkouts().join(&mirror.key);
    fs::create_dir_all(&folder).map_err(|error| Error::writing(&folder, error))?;
    Ok(folder.join(name_of(resolved)))
}

/// Notes that the workspace uses a checkout, and says where it is.
pub(super) fn in_use(
    own: &Path,
    mirror: &Mirror,
    path: PathBuf,
    resolved: &Resolved,
) -> Result<(PathBuf, CheckedOut), Error> {
    note_use(own, mirror, &path)?;
    let objects = RawPath(mirror.path().join("objects"));
    Ok((path, CheckedOut { commit: resolved.commit.clone(), objects }))
}

/// Makes a checkout under another name first, so that half of one is never taken for the whole.
pub(super) fn put(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    let made = remove_tree(&partial).and_then(|()| make(&partial)).and_then(|()| fs::rename(&partial, path));
    made.map_err(|error| {
        let full = error.to_string().contains("No space left on device");
        // The first error is the one to tell; what stays is removed with the next try.
        let _ = remove_tree(&partial);
        if full { Error::DiskFull { path: path.to_owned() } } else { Error::writing(path, error) }
    })
}

/// The branch is part of the name because `HEAD` names it.
pub(super) fn name_of(resolved: &Resolved) -> String {
    let commit = &resolved.commit;
    match &resolved.branch {
        None => commit.clone(),
        Some(branch) => {
            let hash: String =
                Sha256::digest(branch).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            format!("{commit}-{hash}")
        }
    }
}

/// The `.git` folder of a checkout: it borrows the objects of the mirror, and knows its branches as those of `origin`. `refs` are the
/// branches and tags of the mirror, one in a line.
pub(super) fn make_git_folder(
    mirror: &Mirror,
    refs: &str,
    url: &RepoUrl,
    resolved: &Resolved,
    root: &Path,
) -> io::Result<()> {
    let git_dir = root.join(".git");
    pristine_git::init(&git_dir)?;
    let objects = [mirror.path().join("objects").as_os_str().as_bytes(), b"\n"].concat();
    fs::write(git_dir.join("objects/info/alternates"), objects)?;
    fs::write(git_dir.join("packed-refs"), packed_refs(refs))?;
    let head = match &resolved.branch {
        Some(branch) if is_plain(branch) => {
            let file = git_dir.join("refs/heads").join(branch);
            fs::create_dir_all(file.parent().unwrap_or(&git_dir))?;
            fs::write(file, format!("{}\n", resolved.commit))?;
            format!("ref: refs/heads/{branch}\n")
        }
        _ => format!("{}\n", resolved.commit),
    };
    fs::write(git_dir.join("HEAD"), head)?;
    fs::write(git_dir.join("config"), config(url, resolved))
}

/// The branches of the mirror as the agent's git knows them: as those of `origin`.
fn packed_refs(refs: &str) -> String {
    refs.lines().map(|line| line.replacen(" refs/heads/", " refs/remotes/origin/", 1) + "\n").collect()
}

fn config(url: &RepoUrl, resolved: &Resolved) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let sha256 = resolved.commit.len() == 64;
    let format = if sha256 { "\trepositoryformatversion = 1\n" } else { "\trepositoryformatversion = 0\n" };
    let mut config = format!(
        "[core]\n{format}\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        quoted(url.as_str())
    );
    if sha256 {
        config.push_str("[extensions]\n\tobjectformat = sha256\n");
    }
    if let Some(branch) = &resolved.branch {
        let name = quoted(branch);
        config.push_str(&format!("[branch {name}]\n\tremote = origin\n\tmerge = refs/heads/{branch}\n"));
    }
    config
}

/// Whether a branch's name is a path that stays below the folder it is joined to.
fn is_plain(branch: &str) -> bool {
    Path::new(branch).components().all(|part| matches!(part, Component::Normal(_)))
}
