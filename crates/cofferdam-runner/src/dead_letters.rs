//! Runs that failed for good: what is kept of them, and the files for other programs.
//!
//! The record is the truth and is written first. The folder is a copy of it: nothing is read from there, and a file
//! that a crash has kept from being written is written by the next sweep.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cofferdam_core::{
    Actor, DeadLetter, ErrorClass, NodeId, Outcome, REDACTED, Redactor, RunId, iso_time, with_causes,
};
use cofferdam_store::{Claimed, failpoint};
use serde_json::{Value, json};

use crate::attempt_secrets::AllowedValues;
use crate::home::Home;
use crate::node::Node;
use crate::node_lock::is_alive;

/// What a file is called until it is whole: `.RUN.NODE.partial`.
const PARTIAL: &str = "partial";

/// Why a dead letter could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The record refused or failed.
    #[error("the record of the dead letter could not be removed")]
    Operation(#[from] cofferdam_operations::Error),
    /// The file is still there.
    #[error("failed to remove the dead letter {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Forgets the dead letter of a run, and not the run. False if there was none.
///
/// # Errors
/// [`RemoveError`]; what is still on record is still a letter.
pub async fn remove(node: &Node, actor: &Actor, run: &RunId) -> Result<bool, RemoveError> {
    // The file first: cut short here, the letter is whole again after the next sweep. And once more, for a sweep of
    // another process that was faster.
    remove_file(&node.home, run)?;
    let removed = match node.operations().remove_dead_letter(actor, run).await {
        Ok(()) => true,
        Err(cofferdam_operations::Error::DeadLetterNotFound(_)) => false,
        Err(error) => return Err(error.into()),
    };
    remove_file(&node.home, run)?;
    Ok(removed)
}

/// Removes the file of a run's dead letter, for a run whose record is removed.
///
/// # Errors
/// [`RemoveError::File`].
pub fn remove_file(home: &Home, run: &RunId) -> Result<(), RemoveError> {
    let path = path_of(home, run);
    match fs::remove_file(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(RemoveError::File { path, source }),
        _ => Ok(()),
    }
}

/// Files in the folder that are not of a letter on record.
///
/// # Errors
/// If the folder cannot be read.
pub fn foreign(home: &Home, letters: &[RunId]) -> io::Result<Vec<PathBuf>> {
    let own: Vec<PathBuf> = letters.iter().map(|run| path_of(home, run)).collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(home.dead_letters())? {
        let path = entry?.path();
        if !own.contains(&path) && writer_of(&path).is_none() {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// What is kept of a run that has failed for good.
pub(crate) fn letter_of(
    claimed: &Claimed,
    outcome: &Outcome,
    class: ErrorClass,
    redactor: &Redactor,
    values: AllowedValues,
    now_ms: u64,
) -> DeadLetter {
    let mut payload = serde_json::to_value(&claimed.request).unwrap_or(Value::Null);
    if values == AllowedValues::Forgotten
        && let Some(agent) = payload.get_mut("agent")
    {
        // Any word of it may be a value that nobody here can recognise.
        *agent = json!({ "provider": claimed.request.work.provider(), "redacted": REDACTED });
    }
    redactor.value(&mut payload);
    DeadLetter {
        failed_at: iso_time(now_ms),
        error_class: class,
        error_message: redactor.text(&message_of(outcome)).into_owned(),
        attempt: claimed.attempt.number,
        max_attempts: claimed.request.retry.max_attempts,
        payload,
    }
}

/// Writes the file of a letter that is on record. One that cannot be written now is written by the next sweep.
pub(crate) fn write(node: &Node, run: &RunId, letter: &DeadLetter) {
    if let Err(error) = try_write(node, run, letter) {
        let path = path_of(&node.home, run);
        tracing::warn!(run.id = %run, path = %path.display(), error = %with_causes(&error), "a dead letter could not be written");
    }
}

/// Writes the files that are missing, and removes those of letters that are no more and what dead processes have left.
pub(crate) async fn write_missing(node: &Node) -> Result<(), cofferdam_store::Error> {
    for run in node.store.letter_runs().await? {
        if fs::symlink_metadata(path_of(&node.home, &run)).is_ok() {
            continue;
        }
        let Some(kept) = node.store.letter(&run).await? else { continue };
        write(node, &run, &kept.letter);
        // It may have been removed from the record meanwhile.
        if node.store.letter(&run).await?.is_none() {
            let _ = remove_file(&node.home, &run);
        }
    }
    for entry in fs::read_dir(node.home.dead_letters()).into_iter().flatten().flatten() {
        let path = entry.path();
        // A letter that was removed elsewhere, such as through the service. The record is written before the file, so
        // that a file without one is no letter any more.
        if let Some(run) = letter_in(&path)
            && node.store.letter(&run).await?.is_none()
        {
            let _ = fs::remove_file(&path);
        }
        if writer_of(&path).is_some_and(|writer| !is_alive(&node.home, &writer)) {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

fn try_write(node: &Node, run: &RunId, letter: &DeadLetter) -> io::Result<()> {
    let folder = node.home.dead_letters();
    let partial = folder.join(format!(".{run}.{}.{PARTIAL}", node.id));
    let mut text = serde_json::to_vec_pretty(letter)?;
    text.push(b'\n');
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&partial, path_of(&node.home, run))?;
    File::open(&folder)?.sync_all()?;
    failpoint("runner.dead_letter");
    Ok(())
}

fn path_of(home: &Home, run: &RunId) -> PathBuf {
    home.dead_letters().join(format!("{run}.json"))
}

/// The run whose dead letter this file is, by its name.
fn letter_in(path: &Path) -> Option<RunId> {
    path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()
}

/// Who writes or has written this half file, if it is one.
fn writer_of(path: &Path) -> Option<NodeId> {
    let name = path.file_name()?.to_str()?.strip_prefix('.')?.strip_suffix(PARTIAL)?.strip_suffix('.')?;
    let (run, node) = name.split_once('.')?;
    run.parse::<RunId>().ok()?;
    node.parse().ok()
}

fn message_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { message, .. } => message.clone(),
        Outcome::TimedOut { timeout_ms } => format!("it timed out after {timeout_ms} ms"),
        Outcome::Cancelled => "it was cancelled".to_owned(),
        Outcome::Succeeded => "it succeeded".to_owned(),
    }
}
