//! What the agent is to see of a work tree: everything, without the masked files and the credentials.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::git_config::sanitise;
use super::git_folders::{GitFolders, alternates, inner_files, read_alternates, read_gitfile, read_pointer};
use super::survey::Survey;
use super::veil::Veil;
use super::{Error, RepositoryOwner};
use crate::confined::ConfinedFolder;
use crate::raw_path::escape;

/// Longer configuration files are cut.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// What the agent is to see.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Over the work tree.
    pub(super) tree: Veil,
    /// Over the git folder outside the work tree.
    pub(super) outside: Veil,
    /// Folders of objects that are borrowed from.
    pub(super) read_only: Vec<PathBuf>,
    /// Masked paths.
    pub(super) hidden: Vec<String>,
    /// Credentials that were taken out.
    pub(super) stripped: Vec<String>,
}

/// How the work tree gets into the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placing {
    /// As a lower layer; a git folder outside of it stays at its path.
    Overlay,
    /// As a copy, into which a git folder outside of it is moved as `.git`.
    Copy,
}

impl View {
    pub(super) fn of(
        root: &Path,
        git: &GitFolders,
        survey: &Survey,
        placing: Placing,
        owner: RepositoryOwner,
    ) -> Result<Self, Error> {
        let mut view = Self::default();
        for path in &survey.hidden {
            view.hidden.push(escape(path));
            view.tree.hide(path.clone());
        }
        match git.outside(root) {
            Some(outside) => {
                view.clean_git_folder(root, outside, None, owner)?;
                if let Some(own) = &git.own {
                    view.tree.replace(PathBuf::from(".git"), gitfile(own));
                }
            }
            None if git.own.is_some() => {
                view.clean_git_folder(root, root, Some(Path::new(".git")), owner)?;
            }
            None => {}
        }
        for nested in &survey.nested_git {
            view.clean_nested(root, git, nested, placing, owner)?;
        }
        view.read_only.sort();
        view.read_only.dedup();
        Ok(view)
    }

    /// Cleans a git folder: `base` is what the veil lies over, `below` where the git folder is in it
    /// (the work tree's veil), or `None` for the veil over the outside folder.
    fn clean_git_folder(
        &mut self,
        root: &Path,
        base: &Path,
        below: Option<&Path>,
        owner: RepositoryOwner,
    ) -> Result<(), Error> {
        let prefix = below.unwrap_or(Path::new(""));
        let folder = base.join(prefix);
        let open = ConfinedFolder::open_exactly(base).map_err(|error| Error::reading(base, error))?;
        let (configs, objects) = inner_files(&open, prefix);
        for config in configs {
            let path = folder.join(&config);
            let content = open.read_small(&prefix.join(&config), MAX_CONFIG_BYTES);
            let Some(content) = content.map_err(|error| Error::reading(&path, error))? else { continue };
            if let Some(clean) = sanitise(&content) {
                let shown = below.map_or_else(|| path.clone(), |below| below.join(&config));
                let name = escape(&shown);
                self.stripped.extend(clean.stripped.iter().map(|key| format!("{name}: {key}")));
                self.veil(below).replace(prefix.join(config), clean.content);
            }
        }
        for objects in objects {
            let Some(parent) = objects.parent() else { continue };
            self.read_only.extend(alternates(&folder.join(parent), root, owner));
            self.fix_alternates(&folder, prefix, &objects, below, owner);
        }
        Ok(())
    }

    /// A relative path in `alternates` leads elsewhere from `/workspace`; shown absolute, it is right. One that is not
    /// followed stays as it is written: where it leads, and whether anything is there, is not told.
    fn fix_alternates(
        &mut self,
        folder: &Path,
        prefix: &Path,
        objects: &Path,
        below: Option<&Path>,
        owner: RepositoryOwner,
    ) {
        let file = objects.join("info/alternates");
        let Some(content) = read_pointer(&folder.join(&file), owner) else { return };
        let mut absolute = Vec::new();
        for alternate in read_alternates(&folder.join(objects), owner) {
            let accepted = alternate.accepted.as_deref().map(|path| path.as_os_str().as_bytes());
            absolute.extend_from_slice(accepted.unwrap_or(&alternate.line));
            absolute.push(b'\n');
        }
        if absolute != content {
            self.veil(below).replace(prefix.join(file), absolute);
        }
    }

    fn veil(&mut self, below: Option<&Path>) -> &mut Veil {
        if below.is_some() { &mut self.tree } else { &mut self.outside }
    }

    /// A repository inside the work tree: its configuration is cleaned, and a `.git` file that leads
    /// somewhere by a path that is not right inside is shown with one that is.
    fn clean_nested(
        &mut self,
        root: &Path,
        git: &GitFolders,
        nested: &Path,
        placing: Placing,
        owner: RepositoryOwner,
    ) -> Result<(), Error> {
        let path = root.join(nested);
        let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
        if metadata.is_dir() {
            return self.clean_git_folder(root, root, Some(nested), owner);
        }
        if !metadata.is_file() {
            return Ok(());
        }
        let Some(named) = read_gitfile(&path, owner) else { return Ok(()) };
        let up: PathBuf = nested.parent().unwrap_or(Path::new("")).iter().map(|_| "..").collect();
        let in_own = git.own.as_ref().and_then(|own| named.strip_prefix(own).ok());
        let shown = if let Ok(below) = named.strip_prefix(root) {
            gitfile(&up.join(below))
        } else if let (Placing::Copy, Some(below)) = (placing, in_own) {
            gitfile(&up.join(".git").join(below))
        } else if git.outside(root).is_some_and(|outside| named.starts_with(outside)) {
            gitfile(&named)
        } else {
            return Ok(());
        };
        if read_pointer(&path, owner).is_some_and(|content| content != shown) {
            self.tree.replace(nested.to_owned(), shown);
        }
        Ok(())
    }
}

fn gitfile(path: &Path) -> Vec<u8> {
    [b"gitdir: ", path.as_os_str().as_bytes(), b"\n"].concat()
}
