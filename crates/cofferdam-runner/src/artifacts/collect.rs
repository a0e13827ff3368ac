//! The collector: turns what an agent wrote into a patch against the workspace as it was handed over.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::changes::{Reach, Sides, find_changes};
use super::ignored::split_ignored;
use super::job::{CollectJob, Collected, Written};
use super::layers::Layers;
use super::patch::write_patch;
use crate::confined::ConfinedFolder;
use crate::pristine_git;
use crate::raw_path::escape;
use crate::workspace::Manifest;

/// How many ignored paths are named.
const IGNORED_SAMPLE: usize = 20;

/// Why there is no patch.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The job cannot be read.
    #[error("the collector's job is malformed")]
    Job(#[from] serde_json::Error),
    /// A step failed.
    #[error("failed to {action}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// The collector's role: one argument, the [`CollectJob`] as JSON. Leaves `diff.patch` and then
/// `collected.json` in the scratch folder; the second is there only if the first is complete.
pub fn collector_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let job = args.next().unwrap_or_default();
    let collected = serde_json::from_slice(job.as_encoded_bytes()).map_err(CollectError::Job);
    match collected.and_then(|job| collect(&job)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            eprintln!("{error}{}", cause.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

/// Compares, and writes `diff.patch` and `collected.json` to the scratch folder.
///
/// # Errors
/// [`CollectError`]; there is no `collected.json` then.
pub fn collect(job: &CollectJob) -> Result<Collected, CollectError> {
    let on = |action: &'static str| move |source| CollectError::Io { action, source };
    let lower = Layers::open(job.lower.iter().map(AsRef::as_ref)).map_err(on("open the base"))?;
    let (path, reach) = match &job.written {
        Written::Upper { path } => (path, Reach::Merging),
        Written::Tree { path, .. } => (path, Reach::Whole),
    };
    let written = ConfinedFolder::open(path.as_ref()).map_err(on("open what was written"))?;
    let manifest = read_manifest(job).map_err(on("read the manifest"))?;
    let sides = Sides {
        lower: &lower,
        written: &written,
        manifest: manifest.as_ref(),
        handed_over_ns: job.handed_over_ns,
        is_layer: matches!(job.written, Written::Upper { .. }),
    };
    let changes = find_changes(&sides, reach).map_err(on("compare the workspace with its base"))?;

    let git_dir = job.scratch.0.join("git");
    pristine_git::init(&git_dir).map_err(on("make a repository"))?;
    let (kept, ignored) =
        split_ignored(job, &lower, &git_dir, changes.touched).map_err(on("read ignore rules"))?;
    let patch = write_patch(job, &sides, &git_dir, &kept).map_err(on("write the patch"))?;

    let left_out = [changes.left_out, patch.unreadable, patch.too_large].concat();
    let collected = Collected {
        changed_count: patch.changed.len() as u64,
        changed: within(patch.changed, |one| one.path.len() + one.from.as_ref().map_or(0, String::len)),
        left_out_count: left_out.len() as u64,
        left_out: texts(&left_out),
        base_moved_count: changes.base_moved.len() as u64,
        base_moved: texts(&changes.base_moved),
        ignored_count: ignored.len() as u64,
        ignored_sample: texts(&ignored[..ignored.len().min(IGNORED_SAMPLE)]),
        patch_bytes: patch.bytes,
    };
    write_answer(job, &collected).map_err(on("write the answer"))?;
    Ok(collected)
}

/// The most that the answer says of one kind, in bytes. The attack: a million pipes with long names, and
/// whoever reads the answer has no memory left.
const LONGEST_LIST: usize = 4 << 20;

fn texts(paths: &[PathBuf]) -> Vec<String> {
    within(paths.iter().map(|path| escape(path)), String::len)
}

/// The first of a list, as far as they are allowed to be said.
fn within<T>(list: impl IntoIterator<Item = T>, size: impl Fn(&T) -> usize) -> Vec<T> {
    let mut left = LONGEST_LIST;
    let fits = |one: &T| {
        // Every entry costs its frame, too.
        left = left.saturating_sub(size(one) + 64);
        left > 0
    };
    list.into_iter().take_while(fits).collect()
}

fn read_manifest(job: &CollectJob) -> io::Result<Option<Manifest>> {
    match &job.written {
        Written::Tree { manifest: Some(path), .. } => Manifest::read(path.as_ref()).map(Some),
        Written::Tree { manifest: None, .. } | Written::Upper { .. } => Ok(None),
    }
}

/// Written under another name first: a half-written answer must not look like one.
fn write_answer(job: &CollectJob, collected: &Collected) -> io::Result<()> {
    let scratch: &Path = job.scratch.as_ref();
    let partial = scratch.join("collected.partial");
    fs::write(&partial, serde_json::to_vec(collected).map_err(io::Error::from)?)?;
    fs::rename(partial, scratch.join(CollectJob::ANSWER))
}
