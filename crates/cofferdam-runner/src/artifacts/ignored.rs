//! Which touched paths the base's ignore rules keep out of the patch: build products, dependencies.
//!
//! The rules are those that were handed over. The attack otherwise: an agent hides a planted file from
//! the diff, and so from review, by writing a `.gitignore`.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::FileType;

use super::changes::Touched;
use super::job::CollectJob;
use super::layers::{Found, Layers};
use crate::confined::kind_of;
use crate::pristine_git;
use crate::programs::Git;

/// Larger rule files are cut; git reads no more than this either.
const MAX_RULES_BYTES: u64 = 100 << 20;

/// Splits what was touched into what belongs into the patch and what is ignored.
///
/// A path is ignored if the base's rules say so and git did not track it.
pub(super) fn split_ignored(
    job: &CollectJob,
    lower: &Layers,
    git_dir: &Path,
    touched: Vec<Touched>,
) -> io::Result<(Vec<Touched>, Vec<PathBuf>)> {
    if touched.is_empty() {
        return Ok((touched, Vec::new()));
    }
    let rules = job.scratch.0.join("rules");
    fs::create_dir(&rules)?;
    let any_rules = copy_rules(lower, &touched, &rules)? | copy_exclude(job, git_dir)?;
    if !any_rules {
        return Ok((touched, Vec::new()));
    }
    let mut ignored = check_ignore(job, git_dir, &rules, &touched)?;
    if touched.iter().any(|one| one.before.is_some() && ignored.contains(&one.path)) {
        match tracked(job, git_dir) {
            Ok(tracked) => ignored.retain(|path| !tracked.contains(path)),
            // An index that cannot be read must not hide a change: what was there counts as tracked.
            Err(error) => {
                eprintln!("cannot read the index of the base: {error}");
                for one in touched.iter().filter(|one| one.before.is_some()) {
                    ignored.remove(&one.path);
                }
            }
        }
    }
    let (out, kept): (Vec<_>, Vec<_>) = touched.into_iter().partition(|one| ignored.contains(&one.path));
    Ok((kept, out.into_iter().map(|one| one.path).collect()))
}

/// Copies the rule files that could say something about a touched path.
fn copy_rules(lower: &Layers, touched: &[Touched], rules: &Path) -> io::Result<bool> {
    let folders: BTreeSet<&Path> = touched.iter().flat_map(|one| one.path.ancestors().skip(1)).collect();
    let mut absent: HashSet<&Path> = HashSet::new();
    let mut any = false;
    for folder in folders {
        // Parents come first, so a folder that the agent made is looked up once and not for each child.
        if folder.parent().is_some_and(|parent| absent.contains(parent)) {
            absent.insert(folder);
            continue;
        }
        let Found::Folder(merged) = lower.find(folder)? else {
            absent.insert(folder);
            continue;
        };
        let Found::Leaf(layer, stat) = lower.look_up(&merged, folder, OsStr::new(".gitignore"))? else {
            continue;
        };
        // Git does not follow a rule file that is a link.
        if kind_of(&stat) != FileType::RegularFile {
            continue;
        }
        let content = lower.layer(layer).read_small(&folder.join(".gitignore"), MAX_RULES_BYTES);
        if let Ok(Some(content)) = content {
            fs::create_dir_all(rules.join(folder))?;
            fs::write(rules.join(folder).join(".gitignore"), content)?;
            any = true;
        }
    }
    Ok(any)
}

fn copy_exclude(job: &CollectJob, git_dir: &Path) -> io::Result<bool> {
    let Some(exclude) = &job.exclude else { return Ok(false) };
    match fs::read(exclude) {
        Ok(content) => fs::write(git_dir.join("info/exclude"), content).map(|()| true),
        Err(_) => Ok(false),
    }
}

fn check_ignore(
    job: &CollectJob,
    git_dir: &Path,
    rules: &Path,
    touched: &[Touched],
) -> io::Result<HashSet<PathBuf>> {
    let mut command = pristine_git::command(&Git::in_tool(&job.git.0), git_dir);
    command.env("GIT_WORK_TREE", rules).current_dir(rules);
    command.args(["check-ignore", "--no-index", "--stdin", "-z"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().expect("stdin was piped a line above");
    // Written from a thread of its own: git answers while it reads, and two full pipes would wait for
    // each other for ever.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut paths = io::BufWriter::new(&mut stdin);
            for one in touched {
                // `./` keeps git from reading a name such as `:(top)x` as one of its own patterns. An
                // error here means that git has ended, and its status says why.
                let line = [b"./", one.path.as_os_str().as_bytes(), b"\0"].concat();
                if paths.write_all(&line).is_err() {
                    return;
                }
            }
        });
        child.wait_with_output()
    })?;
    // 1 means that nothing is ignored.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(pristine_git::failure("git check-ignore", output.status, &output.stderr));
    }
    let named = split_paths(&output.stdout);
    Ok(named.map(|path| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)).collect())
}

/// Every path in the base's index. A copy is read, beside the shared part that it may refer to.
fn tracked(job: &CollectJob, git_dir: &Path) -> io::Result<HashSet<PathBuf>> {
    let Some(index) = &job.index else { return Ok(HashSet::new()) };
    if !index.0.exists() {
        return Ok(HashSet::new());
    }
    fs::copy(index, git_dir.join("base-index"))?;
    if let Some(folder) = index.0.parent() {
        for entry in fs::read_dir(folder)?.flatten() {
            if entry.file_name().as_bytes().starts_with(b"sharedindex.") {
                fs::copy(entry.path(), git_dir.join(entry.file_name()))?;
            }
        }
    }
    let mut command = pristine_git::command(&Git::in_tool(&job.git.0), git_dir);
    command.env("GIT_INDEX_FILE", git_dir.join("base-index"));
    let listed = pristine_git::output(command.args(["ls-files", "--cached", "-z"]), "git ls-files")?;
    Ok(split_paths(&listed).collect())
}

fn split_paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    listed.split(|&b| b == 0).filter(|path| !path.is_empty()).map(|path| OsStr::from_bytes(path).into())
}
