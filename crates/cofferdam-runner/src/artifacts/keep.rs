//! Keeps what an attempt left: runs the collector, and puts patch, summary and transcript in the run's
//! folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::{EventType, NewEvent, Policy, Redactor};
use cofferdam_sandbox::{
    Changes, CreateError, Exchange, OpenError, Sandbox, Tool, ToolAccess, ToolFolder, ToolSource, ToolSystem,
};
use cofferdam_store::{Claimed, Left, NewArtifact, failpoint};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::job::{CollectJob, Collected, Written};
use super::redact_patch::redact_patch;
use super::transcript;
use crate::node::Node;
use crate::programs::Git;
use crate::raw_path::RawPath;
use crate::redaction::redact_data;
use crate::workspace::{Base, Handover, RepositoryOwner};

/// The name of the patch among a run's artifacts.
pub const DIFF: &str = "diff";
/// The file of the patch.
const DIFF_FILE: &str = "diff.patch";
/// The name of the agent's whole output.
pub const TRANSCRIPT: &str = "transcript";
/// The name of the collector's answer.
pub const SUMMARY: &str = "summary";

/// How many paths of one kind are named to people. The agent makes as many as it likes.
const NAMED: usize = 20;

/// Memory that the collector may use, however little the agent had: a diff must not be lost because it is
/// larger than the program that made it.
const MEMORY: u64 = 1 << 30;

/// How long the collector has. Its work follows what the agent touched, which its limits bound.
const DEADLINE: Duration = Duration::from_secs(600);

/// Why something that an attempt left could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The collector could not be started.
    #[error("failed to start the collector")]
    Start(#[from] CreateError),
    /// The collector failed.
    #[error("failed to collect the changes: {0}")]
    Collector(String),
    /// The agent's output could not be read again.
    #[error("failed to read the agent's output")]
    Output(#[from] OpenError),
    /// A file could not be written.
    #[error("failed to keep what the agent left")]
    Io(#[from] io::Error),
}

/// What was kept.
pub(crate) struct Kept {
    /// What is said of it.
    pub(super) summary: Value,
    pub(super) artifacts: Vec<NewArtifact>,
    /// What can be published of it; `None` if no diff was taken.
    pub(crate) diff: Option<KeptDiff>,
}

/// A diff that was kept.
pub(crate) struct KeptDiff {
    /// The folder of what the attempt leaves.
    pub(crate) folder: PathBuf,
    /// How many paths are changed.
    pub(crate) changed_count: u64,
    /// Whether secrets were taken out of it, so that it is no longer what the agent did.
    pub(crate) has_redacted: bool,
}

impl KeptDiff {
    /// The patch.
    pub(crate) fn patch(&self) -> PathBuf {
        self.folder.join(DIFF_FILE)
    }
}

impl Kept {
    /// What is recorded of it, together with the attempt's end.
    pub(crate) fn left(self, now_ms: u64) -> Left {
        let event = NewEvent::new(now_ms, EventType::Log, self.summary);
        Left { events: vec![event], artifacts: self.artifacts, letter: None }
    }
}

/// What is said of a diff.
fn summary_of(collected: &Collected, has_redacted: bool) -> Value {
    let Collected { changed, left_out, base_moved, ignored_count, patch_bytes, .. } = collected;
    let text = match collected.changed_count {
        0 => "nothing was changed".to_owned(),
        1 => "1 file was changed".to_owned(),
        count => format!("{count} files were changed"),
    };
    json!({
        "text": text,
        "changed": changed.iter().take(100).collect::<Vec<_>>(),
        "changed_count": collected.changed_count,
        "left_out": left_out.iter().take(NAMED).collect::<Vec<_>>(),
        "left_out_count": collected.left_out_count,
        "base_moved": base_moved.iter().take(NAMED).collect::<Vec<_>>(),
        "base_moved_count": collected.base_moved_count,
        "ignored_count": ignored_count,
        "patch_bytes": patch_bytes,
        "redacted": has_redacted,
    })
}

/// What people are told of a diff that had a secret in it.
const REDACTED_DIFF: &str =
    "the diff had secrets in it, which were taken out: as it is, it cannot be applied";

/// An attempt whose agent has ended.
#[derive(Clone, Copy)]
pub(crate) struct Attended<'a> {
    pub(crate) node: &'a Node,
    pub(crate) claimed: &'a Claimed,
    pub(crate) redactor: &'a Redactor,
    pub(crate) sandbox: &'a dyn Sandbox,
    pub(crate) handover: &'a Handover,
}

impl Attended<'_> {
    /// Makes the folder of what the attempt leaves, and keeps in it what the agent printed.
    pub(super) async fn keep_transcript(&self) -> Result<(PathBuf, PathBuf), KeepError> {
        let attempt = &self.claimed.attempt;
        let folder = self.node.home.runs().join(attempt.run.to_string()).join(attempt.number.to_string());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let transcript = folder.join("transcript.log");
        transcript::write(self.sandbox.output().await?, &transcript, self.redactor).await?;
        failpoint("runner.transcript");
        Ok((folder, transcript))
    }

    /// Collects and keeps everything. Doing it again, after a crash, gives the same.
    pub(crate) async fn keep(self) -> Result<Kept, KeepError> {
        let Self { node, claimed, redactor, sandbox, handover } = self;
        let (folder, transcript) = self.keep_transcript().await?;
        // If nothing was written, no sandbox has to be made for collecting it.
        let changes = sandbox.exchange().changes().await;
        let diff = folder.join(DIFF_FILE);
        let (collected, has_redacted) = if changes == Changes::None {
            File::create(&diff)?;
            (Collected::default(), false)
        } else {
            let scratch = node.home.workspaces().join(sandbox.id().to_string()).join("scratch");
            let scratch = make_scratch(&scratch)?;
            let git = Git::for_tools(&node.caller.search(&claimed.request.source));
            let collector = Collector { exchange: sandbox.exchange(), base: &handover.base, changes };
            collector.run(&claimed.request.policy, &scratch, &git).await?;
            take_answer(&scratch, &diff, redactor)?
        };
        failpoint("runner.diff");
        let summary = folder.join("summary.json");
        let mut warnings = warnings_of(&collected, &handover.warnings);
        if has_redacted {
            warnings.push(REDACTED_DIFF.to_owned());
        }
        warnings.iter_mut().for_each(|warning| redactor.string(warning));
        let content = json!({ "collected": collected, "redacted": has_redacted, "warnings": warnings });
        fs::write(&summary, content.to_string())?;
        failpoint("runner.summary");

        let files = [(TRANSCRIPT, transcript), (DIFF, diff), (SUMMARY, summary)];
        let files = files.map(|(name, path)| (name.to_owned(), path)).into();
        let artifacts = make_durable(folder.clone(), files).await?;
        let kept = KeptDiff { folder, changed_count: collected.changed_count, has_redacted };
        Ok(Kept { summary: summary_of(&collected, has_redacted), artifacts, diff: Some(kept) })
    }
}

/// What a person should know about a diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were left out, and the like.
    pub warnings: Vec<String>,
    /// Changed files that somebody else changed meanwhile.
    pub base_moved: Vec<String>,
    /// Whether secrets were taken out of it.
    pub has_redacted: bool,
}

/// Reads the summary that was kept with a diff.
#[must_use]
pub fn read_summary(content: &[u8]) -> Summary {
    let content: Value = serde_json::from_slice(content).unwrap_or_default();
    let texts = |value: &Value| serde_json::from_value(value.clone()).unwrap_or_default();
    Summary {
        warnings: texts(&content["warnings"]),
        base_moved: texts(&content["collected"]["base_moved"]),
        has_redacted: content["redacted"].as_bool().unwrap_or(false),
    }
}

fn warnings_of(collected: &Collected, prepared: &[String]) -> Vec<String> {
    let mut warnings = prepared.to_vec();
    for path in collected.left_out.iter().take(NAMED) {
        let why = "a nested .git, a device, a socket, unreadable or too large";
        warnings.push(format!("not in the diff: {path} ({why})"));
    }
    if let Some(more) = collected.left_out_count.checked_sub(NAMED as u64).filter(|more| *more > 0) {
        warnings.push(format!("not in the diff: {more} more of that kind"));
    }
    for path in collected.base_moved.iter().take(NAMED) {
        warnings.push(format!("somebody else changed {path} while the agent worked"));
    }
    if let Some(more) = collected.base_moved_count.checked_sub(NAMED as u64).filter(|more| *more > 0) {
        warnings.push(format!("somebody else changed {more} more files"));
    }
    if collected.ignored_count > 0 {
        let sample = collected.ignored_sample.first().map(String::as_str).unwrap_or_default();
        let count = collected.ignored_count;
        warnings.push(format!("not in the diff: {count} ignored files, such as {sample}"));
    }
    warnings
}

/// Compares what the agent left with what it was handed.
struct Collector<'a> {
    exchange: &'a dyn Exchange,
    base: &'a Base,
    changes: Changes,
}

impl Collector<'_> {
    async fn run(self, policy: &Policy, scratch: &Path, git: &Path) -> Result<(), KeepError> {
        let Self { exchange, base, changes } = self;
        let mut shown = Shown { exchange, folders: Vec::new() };
        let kept = KeptFiles::of(base, scratch)?;
        let job = CollectJob {
            lower: base.layers.iter().map(|path| shown.show("lower", path, base_access(changes))).collect(),
            written: match changes {
                Changes::Layer => Written::Upper { path: shown.changes("written") },
                Changes::Tree | Changes::None => Written::Tree {
                    path: shown.changes("written"),
                    manifest: (base.manifest.as_ref())
                        .map(|path| shown.show("manifest", path, ToolAccess::ReadOwn)),
                },
            },
            index: kept.index.map(|path| shown.show("index", &path, ToolAccess::ReadCaller)),
            exclude: kept.exclude.map(|path| shown.show("exclude", &path, ToolAccess::ReadCaller)),
            scratch: shown.show("scratch", &scratch.into(), ToolAccess::Write),
            handed_over_ns: base.handed_over_ns,
            git: git.into(),
        };
        let json = serde_json::to_string(&job).map_err(io::Error::from)?;
        let arguments = vec!["collect".to_owned(), json];
        let mut policy = policy.clone();
        policy.limits.memory_bytes = policy.limits.memory_bytes.max(MEMORY);
        let tool = Tool {
            arguments,
            input: Vec::new(),
            folders: shown.folders,
            system: ToolSystem::Programs,
            policy,
            deadline: DEADLINE,
        };
        let output = exchange.run_tool(&tool).await?;
        match output.code {
            Some(0) => Ok(()),
            Some(code) => Err(KeepError::Collector(format!("{} (status {code})", output.message))),
            None => Err(KeepError::Collector(output.message)),
        }
    }
}

/// Below an overlay is the caller's own repository; what a copy is compared with was made for it.
fn base_access(changes: Changes) -> ToolAccess {
    match changes {
        Changes::Layer => ToolAccess::ReadCaller,
        Changes::Tree | Changes::None => ToolAccess::ReadOwn,
    }
}

/// The folders and files that a tool's sandbox shows.
pub(crate) struct Shown<'a> {
    pub(crate) exchange: &'a dyn Exchange,
    pub(crate) folders: Vec<ToolFolder>,
}

impl Shown<'_> {
    /// Shows a path of this node's, and says where the tool finds it.
    pub(crate) fn show(&mut self, name: &str, path: &RawPath, access: ToolAccess) -> RawPath {
        self.add(name, ToolSource::Node(path.0.clone()), access)
    }

    /// The same with what the agent has left.
    fn changes(&mut self, name: &str) -> RawPath {
        self.add(name, ToolSource::Changes, ToolAccess::ReadAgent)
    }

    fn add(&mut self, name: &str, source: ToolSource, access: ToolAccess) -> RawPath {
        let folder = ToolFolder { name: format!("{name}-{}", self.folders.len()), source, access };
        let shown = RawPath(self.exchange.tool_path(&folder));
        self.folders.push(folder);
        shown
    }
}

/// What the base has of git's own files, as copies of ours. The collector is shown no file of the repository's git folder
/// itself, whose owner could put a link to anything in its place.
struct KeptFiles {
    index: Option<RawPath>,
    exclude: Option<RawPath>,
}

impl KeptFiles {
    fn of(base: &Base, scratch: &Path) -> io::Result<Self> {
        let Some(root) = base.layers.last() else { return Ok(Self { index: None, exclude: None }) };
        let owner = RepositoryOwner::of(&root.0)?;
        let keep = |file: &Option<RawPath>, name: &str| -> io::Result<Option<RawPath>> {
            let path = RawPath(scratch.with_file_name(name));
            match file {
                // That of a copy was kept when it was made, beside it.
                Some(file) if file.0.parent() == path.0.parent() => Ok(Some(file.clone())),
                Some(file) => {
                    // A new repository has no index yet.
                    let Some(mut original) = owner.open(&file.0)? else { return Ok(None) };
                    io::copy(&mut original, &mut File::create(&path.0)?)?;
                    Ok(Some(path))
                }
                None => Ok(None),
            }
        };
        Ok(Self { index: keep(&base.index, "kept-index")?, exclude: keep(&base.exclude, "kept-exclude")? })
    }
}

/// Makes the folder that a tool writes to: new and empty.
pub(crate) fn make_scratch(path: &Path) -> io::Result<PathBuf> {
    cofferdam_sandbox::remove_tree(path)?;
    fs::DirBuilder::new().mode(0o700).recursive(true).create(path)?;
    Ok(path.to_owned())
}

/// Opens a file that the collector wrote. The collector read hostile files; what it leaves is not trusted
/// to be a file.
fn open_answer(scratch: &Path, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(scratch.join(name), flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Reads a small file that a tool wrote.
pub(crate) fn read_answer(scratch: &Path, name: &str) -> io::Result<Vec<u8>> {
    const LARGEST: u64 = 64 << 20;
    let mut content = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(open_answer(scratch, name)?, LARGEST), &mut content)?;
    Ok(content)
}

/// Takes over what the collector found, without secrets, and says whether there were any.
fn take_answer(scratch: &Path, diff: &Path, redactor: &Redactor) -> Result<(Collected, bool), KeepError> {
    let patch = open_answer(scratch, CollectJob::PATCH)?;
    let patch_has = redact_patch(patch, &mut File::create(diff)?, redactor)?;
    let collected: Collected = serde_json::from_slice(&read_answer(scratch, CollectJob::ANSWER)?)
        .map_err(|error| KeepError::Collector(error.to_string()))?;
    let (collected, names_have) = redact_data(redactor, &collected)?;
    Ok((Collected { patch_bytes: diff.metadata()?.len(), ..collected }, patch_has || names_have))
}

/// Puts the files on the disk for good, all at once, since each alone costs as much as all together. Only then
/// may a record say that they are there.
pub(crate) async fn make_durable(
    folder: PathBuf,
    files: Vec<(String, PathBuf)>,
) -> io::Result<Vec<NewArtifact>> {
    let made = tokio::task::spawn_blocking(move || sync_all(&folder, files));
    made.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))
}

fn sync_all(folder: &Path, files: Vec<(String, PathBuf)>) -> io::Result<Vec<NewArtifact>> {
    let sync = |path: &Path| File::open(path)?.sync_all();
    std::thread::scope(|scope| {
        let syncing: Vec<_> = files.iter().map(|(_, path)| scope.spawn(move || sync(path))).collect();
        let folder_synced = sync(folder);
        syncing
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))?;
        folder_synced
    })?;
    let artifact = |(name, path): (String, PathBuf)| {
        let (bytes, sha256) = fingerprint(&path)?;
        Ok(NewArtifact { name, place: path.into(), bytes, sha256 })
    };
    files.into_iter().map(artifact).collect()
}

pub(super) fn fingerprint(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 32 << 10];
    let mut bytes = 0;
    loop {
        let count = io::Read::read(&mut file, &mut buffer)?;
        if count == 0 {
            let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok((bytes, digest));
        }
        hash.update(&buffer[..count]);
        bytes += count as u64;
    }
}
