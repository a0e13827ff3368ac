//! A work tree on this machine: as the lower layer of an overlay, or copied where that cannot be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_core::{Mode, Policy};
use cofferdam_sandbox::{Companion, Workspace};

use super::base::now_ns;
use super::copy::Copier;
use super::git_config::without_worktree;
use super::git_folders::{GitFolders, inner_files};
use super::mask::Matcher;
use super::survey::{Owners, survey_owners, survey_tree};
use super::veil::Veil;
use super::view::{Placing, View};
use super::{Base, Error, Layering, Prepared, Progress, RepositoryOwner};
use crate::confined::ConfinedFolder;
use crate::home::Home;
use crate::raw_path::{RawPath, escape};

/// Prepares a work tree. `own` is a new folder for what is made for it.
pub(super) fn prepare_local(
    home: &Home,
    own: &Path,
    root: &Path,
    policy: &Policy,
    layering: Layering,
    progress: &mut Progress<'_>,
) -> Result<Prepared, Error> {
    let owner = RepositoryOwner::of(root).map_err(|error| Error::reading(root, error))?;
    let owners = Owners::of_this_process();
    let mut survey = survey_tree(root, &Matcher::new(&policy.mask)?, owners)?;
    let git = GitFolders::find(root, owner);
    let foreign = match git.outside(root) {
        Some(outside) if survey.foreign.is_none() => {
            survey_owners(outside, owners)?.map(|_| outside.to_owned())
        }
        _ => survey.foreign.take(),
    };
    // The state folder holds other runs, and an overlay cannot lie over its own upper layer.
    let home_below = home.root().strip_prefix(root).ok().map(Path::to_owned);
    survey.hidden.extend(home_below.clone());
    let refused = layering == Layering::Copy || policy.mode == Mode::Host;
    let must_copy = refused || foreign.is_some() || home_below.is_some();
    let placing = if must_copy { Placing::Copy } else { Placing::Overlay };
    let view = View::of(root, &git, &survey, placing, owner)?;
    let tree = Tree { own, root, git: &git, view: &view, owner };
    if let Some(path) = &foreign {
        progress.tell(format!("copying, because `{}` belongs to somebody else", escape(path)));
    }
    let mut prepared = match placing {
        Placing::Copy => tree.copy(progress)?,
        Placing::Overlay => tree.overlay()?,
    };
    if let Some(refused) = &git.refused {
        let named = escape(refused);
        prepared.warnings.push(format!("`.git` names `{named}`, which is no git folder of this work tree"));
    }
    prepared.read_only = view.read_only;
    prepared.hidden = view.hidden;
    prepared.stripped = view.stripped;
    prepared.alias = Some(root.to_owned());
    Ok(prepared)
}

struct Tree<'a> {
    own: &'a Path,
    root: &'a Path,
    git: &'a GitFolders,
    view: &'a View,
    owner: RepositoryOwner,
}

impl Tree<'_> {
    fn overlay(&self) -> Result<Prepared, Error> {
        let layers = stack(&self.view.tree, self.root, &self.own.join("veil"))?;
        let mut companions = Vec::new();
        if let Some(outside) = self.git.outside(self.root) {
            let layers = stack(&self.view.outside, outside, &self.own.join("veil-git"))?;
            companions.push(Companion { target: outside.to_owned(), layers });
        }
        let git_file =
            |folder: &Option<PathBuf>, name: &str| folder.as_ref().map(|git| RawPath(git.join(name)));
        let base = Base {
            layers: layers.iter().map(|layer| RawPath(layer.clone())).collect(),
            manifest: None,
            index: git_file(&self.git.own, "index"),
            exclude: git_file(&self.git.common, "info/exclude"),
            handed_over_ns: now_ns(),
        };
        let workspace = Workspace::Overlay { layers };
        Ok(Prepared { companions, ..Prepared::new(workspace, base) })
    }

    fn copy(&self, progress: &mut Progress<'_>) -> Result<Prepared, Error> {
        let (tree, base, manifest) =
            (self.own.join("tree"), self.own.join("base"), self.own.join("manifest.json"));
        let mut copier = Copier::new(Some(base.clone()), self.owner, progress);
        // A `.git` that leads out of the tree would lead the agent's git to the original.
        let has_git_folder = self.root.join(".git").symlink_metadata().is_ok_and(|m| m.is_dir());
        copier.copy(self.root, &tree, &self.view.tree, if has_git_folder { &[] } else { &[".git"] })?;
        copier.manifest.write(&manifest).map_err(|error| Error::writing(&manifest, error))?;
        let mut warnings = std::mem::take(&mut copier.warnings);
        drop(copier);
        warnings.extend(self.copy_outside(&tree.join(".git"), progress)?);
        // The agent may rewrite its index and rules; the base's are kept apart.
        let kept = |from: Option<&PathBuf>, name: &str, to: &str| -> Result<Option<RawPath>, Error> {
            let Some(from) = from.map(|git| git.join(name)) else { return Ok(None) };
            let to = self.own.join(to);
            let opened = self.owner.open(&from).map_err(|error| Error::reading(&from, error))?;
            let Some(mut file) = opened else { return Ok(None) };
            let copied = fs::File::create_new(&to).and_then(|mut copy| io::copy(&mut file, &mut copy));
            copied.map(|_| Some(RawPath(to.clone()))).map_err(|error| Error::writing(&to, error))
        };
        let base = Base {
            layers: vec![RawPath(base)],
            manifest: Some(RawPath(manifest)),
            index: kept(self.git.own.as_ref(), "index", "index")?,
            exclude: kept(self.git.common.as_ref(), "info/exclude", "exclude")?,
            handed_over_ns: now_ns(),
        };
        Ok(Prepared { warnings, ..Prepared::new(Workspace::Folder { path: tree }, base) })
    }

    /// Makes a `.git` folder of its own for the copy of a linked worktree or a submodule.
    fn copy_outside(&self, to: &Path, progress: &mut Progress<'_>) -> Result<Vec<String>, Error> {
        let (Some(common), Some(own)) = (self.git.outside(self.root), &self.git.own) else {
            return Ok(Vec::new());
        };
        let mut copier = Copier::new(None, self.owner, progress);
        copier.copy(common, to, &self.view.outside, &["worktrees"])?;
        if own != common {
            copier.copy(own, to, &Veil::default(), &["commondir", "gitdir"])?;
        }
        let copied = ConfinedFolder::open(to).map_err(|error| Error::writing(to, error))?;
        for config in inner_files(&copied, Path::new("")).0 {
            let config = to.join(config);
            let write = |error| Error::writing(&config, error);
            let content = fs::read(&config).map_err(write)?;
            fs::write(&config, without_worktree(&content)).map_err(write)?;
        }
        Ok(copier.warnings)
    }
}

fn stack(veil: &Veil, root: &Path, at: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(veil.build(root, at)?.into_iter().chain([root.to_owned()]).collect())
}
