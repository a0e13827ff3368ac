//! `agent`: what it costs to run Claude Code sealed, against the same CLI started by hand. Both do the same work
//! in the same repository, and are told the same by the same scripted model.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cofferdam_scripted_model::{Script, ScriptedModel};
use serde_json::{Value, json};

use crate::small_repository;
use crate::stats::Times;
use crate::targets::{Bound, Target, tell};

/// What `agent` is told.
#[derive(clap::Args)]
pub(crate) struct AgentArgs {
    /// How often each of them is measured.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// The release binary; found beside this one by default.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The folder with `claude`; `COFFERDAM_AGENTS` by default.
    #[arg(long)]
    agents: Option<PathBuf>,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/agent.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
}

pub(crate) const TASK: &str = "Make notes.txt, count its lines and correct it.";
/// How often the model is asked: each answer of the script, and its end.
const CALLS: usize = 6;
const KEY: &str = "sk-ant-of-the-benchmark-0123456789";

/// Three commands, a file and an edit. Each answer takes as long as a quick model would, which is far less than
/// the usual one.
const SCRIPT: &str = r#"
answers:
  - {text: I look around., tools: [{shell: {command: "ls -la && git log --oneline | head"}}], delay_ms: 200}
  - {tools: [{write_file: {path: notes.txt, content: "one\ntwo\nthree\n"}}], delay_ms: 200}
  - {tools: [{shell: {command: "wc -l notes.txt && cat notes.txt"}}], delay_ms: 200}
  - {tools: [{edit_file: {path: notes.txt, old: two, new: "2"}}], delay_ms: 200}
  - {tools: [{shell: {command: "git status --short && git diff"}}], delay_ms: 200}
at_end: {text: "It is done: notes.txt has three lines.", delay_ms: 200}
"#;

pub(crate) fn run(args: &AgentArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let stage = Stage::new(args.binary.clone(), args.agents.clone(), folder.path())?;
    let repository = stage.repository("repository")?;
    let (mut sealed, mut bare) = (Times::default(), Times::default());
    let mut stages = Vec::new();
    // The first round fills caches and is thrown away.
    for round in 0..=args.rounds {
        let (time, report) = stage.sealed(&repository)?;
        let by_hand = stage.bare(round)?;
        if round > 0 {
            sealed.add(time);
            bare.add(by_hand);
            stages.push(report);
        }
        eprint!("\rround {round} of {}", args.rounds);
    }
    eprintln!();
    let ratio = sealed.p50_ms() / bare.p50_ms();
    let name = "sealed run / bare claude, p50".to_owned();
    let targets = [
        Target { name, is: ratio, bound: Bound::AtMost(1.15) },
        Target { name: "sealed run, p50 ms".to_owned(), is: sealed.p50_ms(), bound: Bound::Free },
        Target { name: "bare claude, p50 ms".to_owned(), is: bare.p50_ms(), bound: Bound::Free },
    ];
    let details = json!({
        "rounds": sealed.count(),
        "sealed_p95_ms": sealed.p95_ms(),
        "bare_p95_ms": bare.p95_ms(),
        "last_report": stages.last(),
    });
    tell("agent", &targets, &details, &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Where both work.
pub(crate) struct Stage {
    binary: PathBuf,
    agents: PathBuf,
    script: Script,
    folder: PathBuf,
}

impl Stage {
    /// The binary is found beside this one, and the agents as `./dev` names them, unless somebody says otherwise.
    pub(crate) fn new(
        binary: Option<PathBuf>,
        agents: Option<PathBuf>,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let beside = || std::env::current_exe().map(|own| own.with_file_name("cofferdam"));
        let agents = agents.or_else(|| std::env::var_os("COFFERDAM_AGENTS").map(PathBuf::from));
        Ok(Self {
            binary: binary.map_or_else(beside, Ok)?,
            agents: agents.context("where is claude? type: ./dev bench agent, or ./dev bench service")?,
            script: Script::parse(SCRIPT)?,
            folder: folder.to_owned(),
        })
    }

    /// Cofferdam itself, on a state folder of the benchmark.
    pub(crate) fn cofferdam(&self, model: &ScriptedModel) -> Command {
        let mut command = self.agent_command(&self.binary, model);
        command.env("COFFERDAM_HOME", self.state());
        command
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// What one model says to several tasks, to each from the beginning. A task is known by what it says.
    pub(crate) fn script_for(&self, tasks: impl IntoIterator<Item = String>) -> Script {
        let script = Script { answers: Vec::new(), ..self.script.clone() };
        tasks.into_iter().fold(script, |script, task| script.for_prompt(task, self.script.answers.clone()))
    }

    /// A small repository with one commit.
    pub(crate) fn repository(&self, name: &str) -> anyhow::Result<PathBuf> {
        small_repository::make(&self.folder.join(name), || self.command("git"))
    }

    /// One sealed run, with its report.
    fn sealed(&self, repository: &Path) -> anyhow::Result<(Duration, Value)> {
        let model = ScriptedModel::start(self.script.clone());
        let mut command = self.cofferdam(&model);
        command.current_dir(repository);
        command.args(["run", "--json", "--agent", "claude_code", TASK]);
        let (time, stdout) = timed(&mut command)?;
        let report: Value = serde_json::from_slice(&stdout)?;
        ensure!(report["seal"].is_object(), "the run was not sealed: {report}");
        let diff = report["diff"].as_str().unwrap_or_default();
        ensure!(
            report["state"] == "succeeded" && diff.contains("+2\n"),
            "the agent did something else: {report}"
        );
        ensure!(model.calls() == CALLS, "the model was asked {} times", model.calls());
        Ok((time, report))
    }

    /// The same by hand. Each round gets a repository of its own, since nobody puts it back afterwards.
    pub(crate) fn bare(&self, round: usize) -> anyhow::Result<Duration> {
        let repository = self.repository(&format!("bare-{round}"))?;
        let model = ScriptedModel::start(self.script.clone());
        let mut command = self.agent_command(&self.agents.join("claude"), &model);
        command.current_dir(&repository).env("IS_SANDBOX", "1");
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        command.args(["-p", TASK, "--permission-mode", "bypassPermissions"]);
        command.args(["--output-format", "stream-json", "--verbose"]);
        let (time, _) = timed(&mut command)?;
        let notes = std::fs::read_to_string(repository.join("notes.txt"))?;
        ensure!(notes == "one\n2\nthree\n", "the agent did something else: {notes:?}");
        ensure!(model.calls() == CALLS, "the model was asked {} times", model.calls());
        Ok(time)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().env("PATH", format!("{}:{path}", self.agents.display()));
        command.env("HOME", self.folder.join("home")).env("GIT_CONFIG_NOSYSTEM", "1");
        command.stdin(Stdio::null());
        command
    }

    /// The same with a way to the model. Each time the model is another one, at the beginning of its script.
    fn agent_command(&self, program: &Path, model: &ScriptedModel) -> Command {
        let mut command = self.command(program);
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", model.base_url());
        command
    }
}

fn timed(command: &mut Command) -> anyhow::Result<(Duration, Vec<u8>)> {
    let started = Instant::now();
    let ended = command.output().with_context(|| format!("{:?} cannot be started", command.get_program()))?;
    let time = started.elapsed();
    let said = String::from_utf8_lossy(&ended.stderr);
    let printed = String::from_utf8_lossy(&ended.stdout);
    ensure!(ended.status.success(), "{:?} failed: {said} {printed}", command.get_program());
    Ok((time, ended.stdout))
}
