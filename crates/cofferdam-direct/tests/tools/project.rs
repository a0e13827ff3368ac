//! What the model is shown of a project.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cofferdam_direct::sealed::{Answer, GlobJob, GrepJob, GrepOutput, Job, ReadJob, SealedCall, work};
use tempfile::TempDir;

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn run(folder: &Path, job: Job) -> Result<String, String> {
    let call = SealedCall { job, input: None, project: Some(folder.to_owned()), out: folder.to_owned() };
    match work(&call) {
        Answer::Text { text } => Ok(text),
        Answer::Refused { reason } => Err(reason),
        Answer::Page(page) => panic!("{page:?}"),
    }
}

fn read(folder: &Path, path: &str, offset: Option<usize>, limit: Option<usize>) -> Result<String, String> {
    run(folder, Job::Read(ReadJob { path: path.to_owned(), offset, limit }))
}

fn grep(pattern: &str) -> GrepJob {
    GrepJob {
        pattern: pattern.to_owned(),
        path: None,
        glob: None,
        output: GrepOutput::Content,
        ignore_case: false,
        before: 0,
        after: 0,
        limit: None,
    }
}

fn glob(folder: &Path, pattern: &str, path: Option<&str>) -> Result<String, String> {
    run(folder, Job::Glob(GlobJob { pattern: pattern.to_owned(), path: path.map(str::to_owned) }))
}

#[test]
fn a_file_is_read_by_lines() {
    let text: String = (1..=5).map(|number| format!("line {number}\n")).collect();
    let folder = project(&[("src/a.txt", &text), ("empty", ""), ("binary", "a\0b")]);
    let whole = read(folder.path(), "src/a.txt", None, None).unwrap();
    assert_eq!(whole, "     1\tline 1\n     2\tline 2\n     3\tline 3\n     4\tline 4\n     5\tline 5\n");
    assert_eq!(read(folder.path(), "/workspace/src/./a.txt", None, None), Ok(whole));
    let part = read(folder.path(), "src/a.txt", Some(2), Some(2)).unwrap();
    assert_eq!(
        part,
        "     2\tline 2\n     3\tline 3\n(lines 2 to 3 of 5; the next one is at \"offset\": 4)\n"
    );
    assert_eq!(
        read(folder.path(), "src/a.txt", Some(9), None).unwrap_err(),
        "src/a.txt has 5 lines, and none from line 9 on"
    );
    assert_eq!(read(folder.path(), "empty", None, None).unwrap(), "empty is empty");
    assert_eq!(read(folder.path(), "binary", None, None).unwrap_err(), "binary is not a text file");
    assert_eq!(read(folder.path(), "nothing", None, None).unwrap_err(), "there is no file nothing");
}

#[test]
fn a_search_shows_lines_files_or_counts() {
    let folder = project(&[
        ("a.rs", "fn one() {}\nfn two() {}\nlet x = 1;\n"),
        ("b/c.rs", "FN three\n"),
        ("b/d.txt", "fn four\n"),
        ("target/e.rs", "fn ignored\n"),
        (".gitignore", "target/\n"),
        (".git/config", "fn hidden\n"),
    ]);
    let search = |job| run(folder.path(), Job::Grep(job));
    assert_eq!(search(grep("^fn ")).unwrap(), "a.rs:1:fn one() {}\na.rs:2:fn two() {}\nb/d.txt:1:fn four\n");
    let files = GrepJob { output: GrepOutput::FilesWithMatches, ignore_case: true, ..grep("fn") };
    assert_eq!(search(files.clone()).unwrap(), "a.rs\nb/c.rs\nb/d.txt\n");
    assert_eq!(search(GrepJob { glob: Some("*.rs".to_owned()), ..files }).unwrap(), "a.rs\nb/c.rs\n");
    assert_eq!(search(GrepJob { output: GrepOutput::Count, ..grep("fn") }).unwrap(), "a.rs:2\nb/d.txt:1\n");
    let around = GrepJob { after: 1, path: Some("a.rs".to_owned()), ..grep("two") };
    assert_eq!(search(around).unwrap(), "a.rs:2:fn two() {}\na.rs-3-let x = 1;\n");
    assert_eq!(search(grep("nowhere")).unwrap(), "No matches found\n");
    assert!(search(GrepJob { limit: Some(1), ..grep("fn") }).unwrap().contains("there is more"));
    assert!(search(grep("(")).unwrap_err().starts_with("the pattern is wrong"));
    assert!(search(grep("((a{100}){100}){100}")).unwrap_err().starts_with("the pattern is wrong"));
}

#[test]
fn files_are_listed_by_their_names() {
    let folder = project(&[("a.rs", ""), ("b/c.rs", ""), ("b/d.txt", ""), (".hidden/e.rs", "")]);
    assert_eq!(glob(folder.path(), "**/*.rs", None).unwrap(), ".hidden/e.rs\na.rs\nb/c.rs\n");
    assert_eq!(glob(folder.path(), "*.rs", None).unwrap(), "a.rs\n");
    assert_eq!(glob(folder.path(), "*", Some("/workspace/b")).unwrap(), "b/c.rs\nb/d.txt\n");
    assert_eq!(glob(folder.path(), "*.py", None).unwrap(), "No files found\n");
    assert!(glob(folder.path(), "[", None).unwrap_err().starts_with("the pattern is wrong"));
    assert_eq!(glob(folder.path(), "*", Some("nowhere")).unwrap_err(), "there is no file nowhere");
}

/// The attack: a repository with links to what names the host's folders, and a model that was told to follow them.
#[test]
fn no_path_leads_out_of_a_project() {
    let outside = project(&[("secret", "the secret\n")]);
    let folder = project(&[("src/a.txt", "inside\n")]);
    let (secret, link) =
        (outside.path().join("secret"), |to: &Path, at: &str| symlink(to, folder.path().join(at)).unwrap());
    link(&secret, "absolute");
    link(outside.path(), "folder");
    link(Path::new("/proc/self/mountinfo"), "mounts");
    link(Path::new("/proc/self/root/etc/passwd"), "magic");
    let up = format!("{}{}", "../".repeat(20), secret.display());
    link(Path::new(&up), "up");
    link(Path::new("src/a.txt"), "inside");
    for path in [
        "absolute",
        "folder/secret",
        "mounts",
        "magic",
        "up",
        "/etc/passwd",
        "../x",
        "src/../../x",
        up.as_str(),
    ] {
        let error = read(folder.path(), path, None, None).unwrap_err();
        assert!(!error.contains("secret\n") && !error.contains(" - "), "{path}: {error}");
    }
    assert_eq!(read(folder.path(), "inside", None, None).unwrap(), "     1\tinside\n");
    assert_eq!(run(folder.path(), Job::Grep(grep("secret"))).unwrap(), "No matches found\n");
    assert_eq!(glob(folder.path(), "**", None).unwrap(), "src/a.txt\n");
    for path in ["folder", "/etc", ".."] {
        let found = glob(folder.path(), "**", Some(path));
        assert!(found.as_ref().is_err() || found.as_deref() == Ok("No files found\n"), "{path}: {found:?}");
    }
    // Without the wall: the same links, followed as any program would.
    assert_eq!(fs::read_to_string(folder.path().join("up")).unwrap(), "the secret\n");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = project(&[("a", "x\n")]);
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert!(read(folder.path(), "fifo", None, None).unwrap_err().contains("it is not a file"));
    assert!(read(folder.path(), ".", None, None).unwrap_err().contains("it is not a file"));
    assert_eq!(run(folder.path(), Job::Grep(grep("x"))).unwrap(), "a:1:x\n");
}
