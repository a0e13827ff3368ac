//! `direct`: what a question to a model costs through the service, beside the same call by hand and beside
//! `claude-agent-sdk`; how late the first words are; how soon one that is cancelled ends; and what many conversations at once take in
//! memory. All of them are told the same by the same scripted model.

mod bare;
mod memory;
mod service;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use cofferdam_api::client::SdkNext;
use cofferdam_core::{AskInput, AskOptions};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use serde_json::json;

use self::bare::Sdk;
use self::service::Service;
use crate::stats::Times;
use crate::targets::{Bound, Target, tell};

/// What `direct` is told.
#[derive(clap::Args)]
pub(crate) struct DirectArgs {
    /// How often each of them is measured.
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// How often `claude-agent-sdk` is: it takes seconds.
    #[arg(long, default_value_t = 5)]
    sdk_rounds: usize,
    /// Conversations at once.
    #[arg(long, default_value_t = 500)]
    sessions: usize,
    /// The release binary; found beside this one by default.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The folder with `claude`; `COFFERDAM_AGENTS` by default.
    #[arg(long)]
    agents: Option<PathBuf>,
    /// A Python that has `claude-agent-sdk`; `COFFERDAM_AGENT_SDK` by default.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Leave `claude-agent-sdk` out.
    #[arg(long)]
    without_sdk: bool,
    /// Where the numbers are written.
    #[arg(long, default_value = "target/bench/direct.json")]
    output: PathBuf,
    /// Exit with 1 if a target is missed.
    #[arg(long)]
    strict: bool,
}

pub(crate) const KEY: &str = "sk-ant-of-the-benchmark-0123456789";
const PROMPT: &str = "What is 2 + 2? Just give me the number.";
/// What the model sends before its first word: that a message starts, and a block.
const BEFORE_THE_TEXT: usize = 2;

pub(crate) fn run(args: &DirectArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let beside = || std::env::current_exe().map(|own| own.with_file_name("cofferdam"));
    let binary = args.binary.clone().map_or_else(beside, Ok)?;
    let find = || Sdk::find(args.python.as_deref(), args.agents.as_deref());
    let sdk = (!args.without_sdk).then(find).transpose()?;

    let model = ScriptedModel::start(Script::new([]).ending_with(Answer::text("4")));
    let service = Service::start(&binary, &folder.path().join("state"), &model, args.sessions)?;
    let (mut ours, mut raw, mut theirs) = (Times::default(), Times::default(), Times::default());
    // The first round fills caches and is thrown away.
    for round in 0..=args.rounds {
        let started = Instant::now();
        let answer = runtime.block_on(service.client.execute_sdk(&question()))?;
        let own = started.elapsed();
        ensure!(answer.result == "4", "the service answered something else: {answer:?}");
        let by_hand = bare::call(&model, PROMPT)?;
        if round > 0 {
            ours.add(own);
            raw.add(by_hand);
        }
        eprint!("\rround {round} of {}", args.rounds);
    }
    eprintln!();
    if let Some(sdk) = &sdk {
        for round in 0..=args.sdk_rounds {
            let time = sdk.ask(&model, PROMPT, folder.path())?;
            if round > 0 {
                theirs.add(time);
            }
        }
    }
    drop(service);
    let first_words = runtime.block_on(first_words(args, &binary, folder.path()))?;
    let cancelled = runtime.block_on(cancelled(args, &binary, folder.path()))?;
    let memory = runtime.block_on(memory::of_many(&binary, folder.path(), args.sessions))?;

    let mut targets = vec![
        Target {
            name: "one turn above the same raw call, p50 ms".to_owned(),
            is: ours.p50_ms() - raw.p50_ms(),
            bound: Bound::AtMost(10.0),
        },
        Target {
            name: "first words at the client after the model's, p50 ms".to_owned(),
            is: first_words.p50_ms(),
            bound: Bound::AtMost(20.0),
        },
        Target {
            name: "from a cancel to the end at the client, p50 ms".to_owned(),
            is: cancelled.p50_ms(),
            bound: Bound::AtMost(100.0),
        },
        Target {
            name: format!("{} conversations at once, MB each above idle", args.sessions),
            is: memory,
            bound: Bound::AtMost(1.0),
        },
    ];
    if sdk.is_some() {
        let is = theirs.p50_ms() / ours.p50_ms();
        targets.insert(
            1,
            Target { name: "claude-agent-sdk / ours, p50".to_owned(), is, bound: Bound::AtLeast(50.0) },
        );
    }
    let free = |name: &str, is| Target { name: name.to_owned(), is, bound: Bound::Free };
    targets.extend([
        free("POST /execute/sdk, p50 ms", ours.p50_ms()),
        free("POST /execute/sdk, p95 ms", ours.p95_ms()),
        free("from a cancel to the end at the client, p95 ms", cancelled.p95_ms()),
        free("raw call, p50 ms", raw.p50_ms()),
        free("claude-agent-sdk, p50 ms", theirs.p50_ms()),
    ]);
    let details = json!({ "rounds": ours.count(), "sdk_rounds": theirs.count(), "sessions": args.sessions });
    tell("direct", &targets, &details, &args.output)?;
    let failed = args.strict && targets.iter().any(Target::is_missed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The seed's own example.
fn question() -> AskInput {
    let options = AskOptions { max_turns: Some(1), ..AskOptions::default() };
    AskInput { prompt: PROMPT.to_owned(), options, ..AskInput::default() }
}

/// From the moment that the model goes on with its first word to the moment that a client has it.
async fn first_words(
    args: &DirectArgs,
    binary: &std::path::Path,
    folder: &std::path::Path,
) -> anyhow::Result<Times> {
    let gate = |round: usize| format!("round {round}");
    let answers =
        (0..=args.rounds).map(|round| Answer::text("Four.").held_after(BEFORE_THE_TEXT, gate(round)));
    let model = ScriptedModel::start(Script::new(answers));
    let service = Service::start(binary, &folder.join("streams"), &model, args.sessions)?;
    let mut times = Times::default();
    for round in 0..=args.rounds {
        let run = service.client.ask(&question()).await?.id;
        let mut answer = service.client.answer(&run);
        let held = gate(round);
        model.held(&held).await;
        // The client listens before there is anything to hear.
        let listening = tokio::spawn(async move {
            loop {
                if let SdkNext::Delta(_) = answer.next().await? {
                    return anyhow::Ok((Instant::now(), answer));
                }
            }
        });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let started = Instant::now();
        model.release(&held);
        let (seen, mut answer) = listening.await??;
        if round > 0 {
            times.add(seen - started);
        }
        while !matches!(answer.next().await?, SdkNext::Result(_)) {}
    }
    Ok(times)
}

/// From the moment that a client asks for the end of a conversation, in the middle of a call of the model, to the moment that it is
/// told of the end.
async fn cancelled(
    args: &DirectArgs,
    binary: &std::path::Path,
    folder: &std::path::Path,
) -> anyhow::Result<Times> {
    let model = ScriptedModel::start(Script::new([]).ending_with(Answer::text("Four.").held_at("never")));
    let service = Service::start(binary, &folder.join("cancelled"), &model, args.sessions)?;
    let mut times = Times::default();
    for round in 0..=args.rounds {
        let run = service.client.ask(&question()).await?.id;
        let mut answer = service.client.answer(&run);
        model.until_calls(round + 1).await;
        let listening = tokio::spawn(async move {
            loop {
                if let SdkNext::Result(result) = answer.next().await? {
                    return anyhow::Ok((Instant::now(), result.success));
                }
            }
        });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let started = Instant::now();
        service.client.cancel(&run).await?;
        let (seen, success) = listening.await??;
        ensure!(!success, "a conversation that was cancelled has succeeded");
        if round > 0 {
            times.add(seen - started);
        }
    }
    Ok(times)
}
