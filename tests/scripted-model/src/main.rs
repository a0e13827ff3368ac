//! Plays a script as a program, for tests that are not written in Rust and for looking at a CLI by hand.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use cofferdam_scripted_model::{Script, ScriptedModel};

/// A model that says what a script says.
///
/// Prints its base URL and plays until it is interrupted. `POST /_control/release/GATE` opens a gate,
/// `GET /_control/held/GATE` waits until an answer is held there; `GET /_control/calls` and
/// `GET /_control/requests` say what came.
#[derive(Debug, Parser)]
#[command(name = "scripted-model")]
struct Options {
    /// The script, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    script: PathBuf,
    /// The port; a free one, if 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Appends each request that has ended as a line of JSON
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let script = Script::load(&options.script)?;
    let model = ScriptedModel::start_on(script, options.port)
        .with_context(|| format!("failed to listen on port {} of the loopback", options.port))?;
    println!("{}", model.base_url());
    std::io::stdout().flush()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let Some(path) = &options.record else {
            return Ok(tokio::signal::ctrl_c().await?);
        };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("failed to open {}", path.display()))?;
        tokio::select! {
            ended = tokio::signal::ctrl_c() => Ok(ended?),
            failed = model.write_requests(file) => Ok(failed?),
        }
    })
}
