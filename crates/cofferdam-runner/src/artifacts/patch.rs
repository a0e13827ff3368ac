//! Writes the patch: the touched paths go into two commits of a repository of our own, and git compares
//! those. Git never sees the agent's files as a work tree, so nothing they say can matter.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::changes::{Kind, Node, Place, Sides, Touched};
use super::job::{Change, ChangedPath, CollectJob};
use crate::confined::ConfinedFolder;
use crate::pristine_git;
use crate::programs::Git;
use crate::raw_path::escape;

/// What came of writing the patch.
#[derive(Debug, Default)]
pub(super) struct Patch {
    pub(super) changed: Vec<ChangedPath>,
    pub(super) bytes: u64,
    /// Touched files that could not be read, by their owner's own doing.
    pub(super) unreadable: Vec<PathBuf>,
    /// Touched files that would make the patch larger than anybody could use.
    pub(super) too_large: Vec<PathBuf>,
}

/// The largest file of which a patch carries the content; no forge takes a larger one. Git holds a file
/// and its compressed form in memory, so without this one sparse file of a terabyte costs the whole diff.
const LARGEST_FILE: u64 = 100 << 20;
/// The most of all files together. The smallest come first, so that ballast does not displace a change.
const LARGEST_SUM: u64 = 512 << 20;

/// Compares both sides of every touched path and writes `diff.patch`.
pub(super) fn write_patch(
    job: &CollectJob,
    sides: &Sides<'_>,
    git_dir: &Path,
    touched: &[Touched],
) -> io::Result<Patch> {
    let patch = job.scratch.0.join(CollectJob::PATCH);
    if touched.is_empty() {
        File::create(patch)?;
        return Ok(Patch::default());
    }
    let (touched, too_large) = fit(sides, touched)?;
    let unreadable = import(job, sides, git_dir, &touched)?;
    let raw = pristine_git::output(&mut diff_tree(job, git_dir, &["--raw", "-z"]), "git diff-tree")?;
    let changed = parse_raw(&raw)?;
    let output = File::create(&patch)?;
    if !changed.is_empty() {
        let mut command =
            diff_tree(job, git_dir, &["-p", "--binary", "--no-ext-diff", "--no-textconv", "--no-color"]);
        let ended = command.stdout(output).stderr(Stdio::piped()).spawn()?.wait_with_output()?;
        if !ended.status.success() {
            return Err(pristine_git::failure("git diff-tree", ended.status, &ended.stderr));
        }
    }
    Ok(Patch { changed, bytes: patch.metadata()?.len(), unreadable, too_large })
}

/// Splits what was touched into what fits into a patch and what does not.
fn fit<'a>(sides: &Sides<'_>, touched: &'a [Touched]) -> io::Result<(Vec<&'a Touched>, Vec<PathBuf>)> {
    let mut sized = Vec::with_capacity(touched.len());
    for one in touched {
        let mut size = 0;
        for node in [one.before, one.after].into_iter().flatten() {
            let stat = folder_of(sides, node).stat(&one.path)?;
            size = size.max(stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0)));
        }
        sized.push((size, one));
    }
    sized.sort_by_key(|(size, _)| *size);
    let mut sum: u64 = 0;
    let fits = |size: u64| {
        sum = sum.saturating_add(size);
        size <= LARGEST_FILE && sum <= LARGEST_SUM
    };
    let fitting = sized.iter().map(|(size, _)| *size).map(fits).take_while(|fits| *fits).count();
    let too_large = sized.split_off(fitting).into_iter().map(|(_, one)| one.path.clone()).collect();
    let mut kept: Vec<&Touched> = sized.into_iter().map(|(_, one)| one).collect();
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((kept, too_large))
}

fn folder_of<'a>(sides: &Sides<'a>, node: Node) -> &'a ConfinedFolder {
    match node.place {
        Place::Layer(number) => sides.lower.layer(number),
        Place::Written => sides.written,
    }
}

/// Exact renames are found whatever their number; the bound is on comparing contents, which is quadratic
/// and which an agent could otherwise use to keep the collector busy for ever.
const RENAME_LIMIT: &str = "-l1000";

fn diff_tree(job: &CollectJob, git_dir: &Path, options: &[&str]) -> std::process::Command {
    let mut command = pristine_git::command(&Git::in_tool(&job.git.0), git_dir);
    command.args(["diff-tree", "-r", "-M", RENAME_LIMIT, "--full-index"]).args(options);
    command.args(["refs/heads/before", "refs/heads/after", "--"]);
    command
}

fn import(
    job: &CollectJob,
    sides: &Sides<'_>,
    git_dir: &Path,
    touched: &[&Touched],
) -> io::Result<Vec<PathBuf>> {
    let mut command = pristine_git::command(&Git::in_tool(&job.git.0), git_dir);
    // Larger files are streamed by git too, instead of being held in memory.
    command.args(["-c", "core.bigFileThreshold=8m", "-c", "core.compression=1"]);
    command.args(["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--force", "--done"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take().expect("stdin was piped a line above");
    let written = write_stream(sides, touched, BufWriter::with_capacity(256 << 10, stdin));
    let ended = child.wait_with_output()?;
    if !ended.status.success() {
        // Git's own words say more than the broken pipe that its end caused here.
        return Err(pristine_git::failure("git fast-import", ended.status, &ended.stderr));
    }
    written
}

fn write_stream(
    sides: &Sides<'_>,
    touched: &[&Touched],
    mut out: BufWriter<impl Write>,
) -> io::Result<Vec<PathBuf>> {
    let mut marks = 0_u64;
    let mut unreadable = Vec::new();
    let mut trees = [Vec::new(), Vec::new()];
    for one in touched {
        let mut sources = [None, None];
        let mut readable = true;
        for (node, source) in [one.before, one.after].into_iter().zip(&mut sources) {
            let Some(node) = node else { continue };
            match Content::open(sides, &one.path, node) {
                Ok(content) => *source = Some((node, content)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => readable = false,
                Err(error) => return Err(error),
            }
        }
        if !readable {
            unreadable.push(one.path.clone());
            continue;
        }
        for (source, tree) in sources.into_iter().zip(&mut trees) {
            let Some((node, content)) = source else { continue };
            marks += 1;
            content.write_blob(marks, &mut out)?;
            tree.push((node.kind, marks, one.path.as_path()));
        }
    }
    for (branch, tree) in ["before", "after"].into_iter().zip(trees) {
        writeln!(out, "commit refs/heads/{branch}\ncommitter cofferdam <> 0 +0000\ndata 0")?;
        for (kind, mark, path) in tree {
            let mode = match kind {
                Kind::File => "100644",
                Kind::Executable => "100755",
                Kind::Link => "120000",
            };
            write!(out, "M {mode} :{mark} ")?;
            write_quoted(path, &mut out)?;
            out.write_all(b"\n")?;
        }
    }
    out.write_all(b"done\n")?;
    out.flush()?;
    Ok(unreadable)
}

enum Content {
    File(File),
    Target(Vec<u8>),
}

impl Content {
    fn open(sides: &Sides<'_>, path: &Path, node: Node) -> io::Result<Self> {
        let folder = folder_of(sides, node);
        match node.kind {
            Kind::Link => folder.link_target(path).map(Self::Target),
            Kind::File | Kind::Executable => folder.file(path).map(Self::File),
        }
    }

    fn write_blob(self, mark: u64, out: &mut impl Write) -> io::Result<()> {
        let (size, mut content): (u64, Box<dyn io::Read>) = match self {
            Self::File(file) => (file.metadata()?.len(), Box::new(file)),
            Self::Target(target) => (target.len() as u64, Box::new(io::Cursor::new(target))),
        };
        write!(out, "blob\nmark :{mark}\ndata {size}\n")?;
        let copied = io::copy(&mut content.by_ref().take(size), out)?;
        // Only a file of the original can shrink while it is read, and it is reported as moved then. The
        // stream has promised a length, so it is filled up instead of giving up the whole diff.
        io::copy(&mut io::repeat(0).take(size - copied), out)?;
        out.write_all(b"\n")
    }
}

/// Writes a path as git's C-style string.
fn write_quoted(path: &Path, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' | 0..=31 | 127..=255 => write!(out, "\\{byte:03o}")?,
            _ => out.write_all(&[byte])?,
        }
    }
    out.write_all(b"\"")
}

/// Reads `:100644 100644 <sha> <sha> R100\0from\0to\0`.
fn parse_raw(raw: &[u8]) -> io::Result<Vec<ChangedPath>> {
    let text = |bytes: &[u8]| escape(Path::new(std::ffi::OsStr::from_bytes(bytes)));
    let malformed = || io::Error::other("git diff-tree printed something unexpected");
    let mut fields = raw.split(|&b| b == 0);
    let mut changed = Vec::new();
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let status = head.rsplit(|&b| b == b' ').next().and_then(|status| status.first());
        let path = text(fields.next().ok_or_else(malformed)?);
        let one = match status.ok_or_else(malformed)? {
            b'A' => ChangedPath { change: Change::Added, path, from: None },
            b'D' => ChangedPath { change: Change::Deleted, path, from: None },
            b'T' => ChangedPath { change: Change::Retyped, path, from: None },
            b'R' => {
                let to = text(fields.next().ok_or_else(malformed)?);
                ChangedPath { change: Change::Renamed, path: to, from: Some(path) }
            }
            b'M' => ChangedPath { change: Change::Modified, path, from: None },
            _ => return Err(malformed()),
        };
        changed.push(one);
    }
    Ok(changed)
}
