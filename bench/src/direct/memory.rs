//! What many conversations at once take in memory.

use std::path::Path;

use anyhow::{Context as _, ensure};
use cofferdam_api::client::SdkNext;
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};

use super::question;
use super::service::Service;

const GATE: &str = "all are there";

/// What each of so many conversations takes above an idle service, in megabytes. All of them wait for the model at the
/// same time, and are read as streams.
pub(super) async fn of_many(binary: &Path, folder: &Path, sessions: usize) -> anyhow::Result<f64> {
    let answer = Answer::text("Four.").held_after(super::BEFORE_THE_TEXT, GATE);
    let model = ScriptedModel::start(Script::new([]).ending_with(answer));
    let service = Service::start(binary, &folder.join("many"), &model, sessions)?;
    let idle = service.memory()?;
    let mut reading = tokio::task::JoinSet::new();
    for _ in 0..sessions {
        let run = service.client.ask(&question()).await?.id;
        let mut answer = service.client.answer(&run);
        reading.spawn(async move {
            loop {
                if let SdkNext::Result(result) = answer.next().await? {
                    return anyhow::Ok(result.success);
                }
            }
        });
    }
    model.until_calls(sessions).await;
    let busy = service.memory()?;
    model.release(GATE);
    while let Some(read) = reading.join_next().await {
        ensure!(read.context("a reader panicked")??, "a conversation failed");
    }
    ensure!(model.max_in_flight() >= sessions, "only {} were there at once", model.max_in_flight());
    Ok(busy.saturating_sub(idle) as f64 / sessions as f64 / 1e6)
}
