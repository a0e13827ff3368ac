//! The walls around what direct runs read: the real binary, in a real sandbox without an agent.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::{AttemptRef, Limits, Policy, RunId, SandboxId};
use cofferdam_direct::sealed::{Answer, Input, Job, PageJob, ReadJob, SealedCall, work};
use cofferdam_sandbox::{
    Caller, CreateError, Options, Tool, ToolAccess, ToolFolder, ToolOutput, ToolSource, ToolSystem, Tools,
};
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

/// A state folder of its own.
struct Stage {
    folder: TempDir,
    tools: Tools,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().canonicalize().unwrap().join("state");
        fs::create_dir(&state).unwrap();
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_cofferdam"));
        Self { folder, tools: Tools::new(Options::new(state, binary, Caller::default())) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// A new folder with this content in the file that a process reads.
    fn input(&self, content: &[u8]) -> PathBuf {
        let folder = self.path("input");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(Input::FILE), content).unwrap();
        folder
    }

    /// Has a job done in a sealed process; `None` if it left no answer.
    async fn run(&self, job: Job, shown: Shown, within: Duration) -> (ToolOutput, Option<Answer>) {
        self.try_run(job, shown, within).await.expect("a sealed process")
    }

    async fn try_run(
        &self,
        job: Job,
        shown: Shown,
        within: Duration,
    ) -> Result<(ToolOutput, Option<Answer>), CreateError> {
        let out = self.path("out");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
        let folder = |name: &str, source, access| ToolFolder { name: name.to_owned(), source, access };
        let written = folder("out", ToolSource::Node(out.clone()), ToolAccess::Write);
        let mut call = SealedCall { job, input: None, project: None, out: self.tools.path(&written) };
        let mut folders = Vec::new();
        match shown {
            Shown::Input(path) => {
                let input = folder("input", ToolSource::Node(path), ToolAccess::ReadOwn);
                call.input = Some(self.tools.path(&input).join(Input::FILE));
                folders.push(input);
            }
            Shown::Layers(layers) => {
                let project = folder("project", ToolSource::Layers(layers), ToolAccess::ReadCaller);
                call.project = Some(self.tools.path(&project));
                folders.push(project);
            }
            Shown::Everything => call.project = Some("/".into()),
        }
        folders.push(written);
        let (arguments, input) = (vec![SealedCall::ROLE.to_owned()], serde_json::to_vec(&call).unwrap());
        let limits = Limits { memory_bytes: SealedCall::MEMORY_BYTES, pids: 16, ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        let system = ToolSystem::Nothing;
        let tool = Tool { arguments, input, folders, system, policy, deadline: within };
        let id = SandboxId::of(&AttemptRef { run: RunId::new(1, 1), number: 1 });
        let ended = self.tools.run(&id, &tool, pending()).await?;
        let answer = fs::read(out.join(SealedCall::ANSWER)).ok();
        Ok((ended, answer.and_then(|answer| serde_json::from_slice(&answer).ok())))
    }

    /// Looks for what is left of the tools that ran.
    fn end(self) {
        for below in ["trials", "ids"] {
            let left = fs::read_dir(self.path("state").join(below)).into_iter().flatten();
            assert_eq!(left.count(), 0, "{below}");
        }
    }
}

/// What a process sees.
enum Shown {
    Input(PathBuf),
    Layers(Vec<PathBuf>),
    /// All of its own root, as a project.
    Everything,
}

const ENOUGH: Duration = Duration::from_secs(60);

fn page() -> Job {
    Job::Page(PageJob {
        url: "https://a.example/".to_owned(),
        content_type: Some("text/html".to_owned()),
        content_encoding: None,
        offset: 0,
        most_chars: 1000,
    })
}

fn read(path: &str) -> Job {
    Job::Read(ReadJob { path: path.to_owned(), offset: None, limit: None })
}

fn refused(answer: Option<Answer>) -> String {
    match answer {
        Some(Answer::Refused { reason }) => reason,
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_behind_walls_and_one_that_is_never_done_ends_alone() {
    let stage = Stage::new();
    let input = stage.input(b"<title>T</title><p>hello</p>");
    let (ended, answer) = stage.run(page(), Shown::Input(input.clone()), ENOUGH).await;
    let Some(Answer::Page(read)) = answer else { panic!("{ended:?}") };
    assert_eq!(ended.code, Some(0));
    assert!(read.text.contains("hello"), "{read:?}");

    // A process that waits for ever: nobody writes to the other end.
    fs::remove_file(input.join(Input::FILE)).unwrap();
    rustix::fs::mknodat(CWD, input.join(Input::FILE), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let (ended, answer) = stage.run(page(), Shown::Input(input.clone()), Duration::from_secs(2)).await;
    assert_eq!((ended.code, answer), (None, None));
    assert_eq!(ended.message, "it took longer than 2 s");

    // The next one is read as ever.
    fs::remove_file(input.join(Input::FILE)).unwrap();
    fs::write(input.join(Input::FILE), "<p>again</p>").unwrap();
    let (_, answer) = stage.run(page(), Shown::Input(input), ENOUGH).await;
    assert!(matches!(answer, Some(Answer::Page(read)) if read.text.contains("again")));
    stage.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_process_sees_nothing_of_the_machine() {
    let stage = Stage::new();
    let secret = stage.path("secret");
    fs::write(&secret, "the secret").unwrap();
    let secret = secret.strip_prefix("/").unwrap().to_str().unwrap().to_owned();
    for path in ["etc/passwd", "etc/hostname", "usr/bin/env", "bin/sh", &secret] {
        let (_, answer) = stage.run(read(path), Shown::Everything, ENOUGH).await;
        assert_eq!(refused(answer), format!("there is no file {path}"));
    }
    // Without the walls: the same job, in this process.
    for path in ["etc/passwd", &secret] {
        let call = SealedCall { job: read(path), input: None, project: Some("/".into()), out: "/".into() };
        assert!(matches!(work(&call), Answer::Text { .. }), "{path}");
    }
    stage.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_masked_is_not_there_for_a_tool_and_no_link_leads_to_it() {
    let stage = Stage::new();
    let (project, veil) = (stage.path("project"), stage.path("veil"));
    for folder in [&project, &veil] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(project.join(".env"), "KEY=the secret\n").unwrap();
    fs::write(project.join("a.txt"), "inside\n").unwrap();
    std::os::unix::fs::symlink(".env", project.join("link")).unwrap();
    std::os::unix::fs::symlink("/proc/self/mountinfo", project.join("mounts")).unwrap();
    // The overlay's word for a file that is not there.
    rustix::fs::mknodat(CWD, veil.join(".env"), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    let masked = || Shown::Layers(vec![veil.clone(), project.clone()]);
    let (ended, answer) = match stage.try_run(read("a.txt"), masked(), ENOUGH).await {
        // Root's own files cannot be layered everywhere; then a run is given a copy without what is masked.
        Err(CreateError::NoOverlay { message, .. }) if rustix::process::geteuid().is_root() => {
            return eprintln!("skipped: root's files cannot be layered here: {message}");
        }
        ran => ran.expect("a sealed process"),
    };
    assert_eq!(answer, Some(Answer::Text { text: "     1\tinside\n".to_owned() }), "{ended:?}");
    for path in [".env", "link"] {
        let (_, answer) = stage.run(read(path), masked(), ENOUGH).await;
        assert_eq!(refused(answer), format!("there is no file {path}"));
    }
    let (_, answer) = stage.run(read("mounts"), masked(), ENOUGH).await;
    assert_eq!(refused(answer), "mounts leads out of the project");
    // Without the veil the same file is read, and without the confinement the same link names the host's folders.
    let (_, answer) = stage.run(read("link"), Shown::Layers(vec![project.clone()]), ENOUGH).await;
    assert!(matches!(answer, Some(Answer::Text { text }) if text.contains("the secret")));
    assert!(!fs::read_to_string(project.join("mounts")).unwrap().is_empty());
    assert_eq!(fs::read_to_string(Path::new(&project).join(".env")).unwrap(), "KEY=the secret\n");
    stage.end();
}
