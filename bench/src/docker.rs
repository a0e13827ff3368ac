//! `docker`: what a whole attempt in a container costs, against `docker run --rm` of the same image on the same network:
//! one after the other, and ten at once.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;

use crate::small_repository;
use crate::stats::Times;
use crate::targets::{Bound, Target, tell};

/// What `docker` is told.
#[derive(clap::Args)]
pub(crate) struct DockerArgs {
    /// How often each of them is measured.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// How often ten at once are measured.
    #[arg(long, default_value_t = 3)]
    bursts: usize,
    /// The release binary; found beside this one by default.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The image; `COFFERDAM_TEST_IMAGE_SMALL` by default.
    #[arg(long)]
    image: Option<String>,
    /// The engine; `COFFERDAM_TEST_DOCKER` or `DOCKER_HOST` by default.
    #[arg(long)]
    engine: Option<String>,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/docker.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
}

/// Attempts at once.
const AT_ONCE: usize = 10;

pub(crate) fn run(args: &DockerArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let beside = || std::env::current_exe().map(|own| own.with_file_name("cofferdam"));
    let stage = Stage {
        binary: args.binary.clone().map_or_else(beside, Ok)?,
        image: args
            .image
            .clone()
            .or_else(|| named("COFFERDAM_TEST_IMAGE_SMALL"))
            .context("which image? type: ./dev bench docker --image IMAGE")?,
        engine: args
            .engine
            .clone()
            .or_else(|| named("COFFERDAM_TEST_DOCKER"))
            .or_else(|| named("DOCKER_HOST")),
        folder: folder.path().to_owned(),
    };
    let repository = stage.repository()?;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    // The first round fills caches and is thrown away.
    for round in 0..=args.rounds {
        // In turn, so that a busy moment of the machine hits both.
        let (own, peer) =
            (stage.at_once(1, |stage| stage.ours(&repository))?, stage.at_once(1, Stage::theirs)?);
        if round > 0 {
            ours.add(own);
            theirs.add(peer);
        }
        eprint!("\rround {round} of {}", args.rounds);
    }
    eprintln!();
    let (mut our_burst, mut their_burst) = (Times::default(), Times::default());
    for burst in 1..=args.bursts {
        our_burst.add(stage.at_once(AT_ONCE, |stage| stage.ours(&repository))?);
        their_burst.add(stage.at_once(AT_ONCE, Stage::theirs)?);
        eprint!("\rten at once: {burst} of {}", args.bursts);
    }
    eprintln!();
    let free = |name: &str, is| Target { name: name.to_owned(), is, bound: Bound::Free };
    let held = |name: &str, is| Target { name: name.to_owned(), is, bound: Bound::AtMost(1.3) };
    let targets = [
        held("whole attempt / docker run --rm, p50", ours.p50_ms() / theirs.p50_ms()),
        held("ten at once / ten docker run --rm at once, p50", our_burst.p50_ms() / their_burst.p50_ms()),
        free("whole attempt, p50 ms", ours.p50_ms()),
        free("docker run --rm, p50 ms", theirs.p50_ms()),
        free("ten attempts at once, p50 ms", our_burst.p50_ms()),
        free("ten docker run --rm at once, p50 ms", their_burst.p50_ms()),
    ];
    let details = json!({
        "rounds": ours.count(), "bursts": our_burst.count(), "image": stage.image,
        "ours_p95_ms": ours.p95_ms(), "theirs_p95_ms": theirs.p95_ms(),
    });
    tell("docker", &targets, &details, &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Where both work.
struct Stage {
    binary: PathBuf,
    image: String,
    engine: Option<String>,
    folder: PathBuf,
}

impl Stage {
    /// A small repository with one commit.
    fn repository(&self) -> anyhow::Result<PathBuf> {
        small_repository::make(&self.folder.join("repository"), || Command::new("git"))
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.envs(self.engine.as_ref().map(|engine| ("DOCKER_HOST", engine)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A whole run: accepted, prepared, sealed, executed, collected, recorded, removed.
    fn ours(&self, repository: &Path) -> Command {
        let mut command = self.command(&self.binary);
        command.env("COFFERDAM_HOME", self.folder.join("state")).arg("run").arg("--repo").arg(repository);
        command.args(["--mode", "docker", "--image", &self.image, "--network", "none", "--", "true"]);
        command
    }

    fn theirs(&self) -> Command {
        let mut command = self.command("docker");
        command.args(["run", "--rm", "--network", "none", &self.image, "true"]);
        command
    }

    /// The time until the last of so many has ended.
    fn at_once(&self, count: usize, make: impl Fn(&Self) -> Command) -> anyhow::Result<Duration> {
        let mut commands: Vec<Command> = (0..count).map(|_| make(self)).collect();
        let started = Instant::now();
        let children = commands.iter_mut().map(Command::spawn).collect::<Result<Vec<_>, _>>()?;
        for child in children {
            let ended = child.wait_with_output()?;
            ensure!(ended.status.success(), "it said: {}", String::from_utf8_lossy(&ended.stderr));
        }
        Ok(started.elapsed())
    }
}
