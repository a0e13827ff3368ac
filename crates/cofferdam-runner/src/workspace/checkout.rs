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
use super::refs::{Resolved, resolve};
use super::unfolded::check_unfolded;
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
    reference: Option<&str>,
    remote: Remote<'_>,
    progress: &mut Progress<'_>,
) -> Result<(PathBuf, CheckedOut), Error> {
    let mirror = Mirror::fetch(home, url, reference, remote, progress)?;
    let preferred = remote.branch.filter(|_| reference.is_none()).and_then(|branch| {
        let commit = mirror.commit(&branch.reference())?;
        Some(Resolved { commit, branch: Some(branch.as_str().to_owned()) })
    });
    let resolved = match preferred {
        Some(resolved) => resolved,
        None => resolve(&mirror, url.as_str(), reference)?,
    };
    let from =
        CheckedOut { commit: resolved.commit.clone(), objects: RawPath(mirror.path().join("objects")) };
    let folder = home.checkouts().join(&mirror.key);
    fs::create_dir_all(&folder).map_err(|error| Error::writing(&folder, error))?;
    let path = folder.join(name_of(&resolved));
    if path.exists() {
        note_use(own, &mirror, &path)?;
        return Ok((path, from));
    }
    if let Some(checked) = remote.checked {
        check_unfolded(&mirror, url, &resolved.commit, checked)?;
    }
    progress.tell(format!("checking out {}", &resolved.commit[..12.min(resolved.commit.len())]));
    let partial = path.with_extension("partial");
    let made = remove_tree(&partial)
        .and_then(|()| make(&mirror, url, &resolved, &partial))
        .and_then(|()| fs::rename(&partial, &path));
    match made {
        Ok(()) => note_use(own, &mirror, &path).map(|()| (path, from)),
        Err(error) => {
            let full = error.to_string().contains("No space left on device");
            let _ = remove_tree(&partial);
            if full { Err(Error::DiskFull { path }) } else { Err(Error::writing(&path, error)) }
        }
    }
}

/// The branch is part of the name because `HEAD` names it.
fn name_of(resolved: &Resolved) -> String {
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

fn make(mirror: &Mirror, url: &RepoUrl, resolved: &Resolved, root: &Path) -> io::Result<()> {
    let git_dir = root.join(".git");
    pristine_git::init(&git_dir)?;
    let objects = [mirror.path().join("objects").as_os_str().as_bytes(), b"\n"].concat();
    fs::write(git_dir.join("objects/info/alternates"), objects)?;
    fs::write(git_dir.join("packed-refs"), packed_refs(mirror))?;
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
    fs::write(git_dir.join("config"), config(url, resolved))?;
    // Our own configuration, and no filter is defined in it: an attribute can name one and nothing runs.
    let mut command = pristine_git::command(&mirror.git, &git_dir);
    command.env("GIT_WORK_TREE", root).current_dir(root).args(["reset", "--hard", "--quiet", "HEAD"]);
    pristine_git::output(&mut command, "git reset").map(drop)
}

/// The branches of the mirror as the agent's git knows them: as those of `origin`.
fn packed_refs(mirror: &Mirror) -> String {
    let refs = mirror.refs().unwrap_or_default();
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
