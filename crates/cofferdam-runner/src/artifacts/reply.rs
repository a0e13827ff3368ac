//! What a message to an agent leaves: its reply, and the files that come with it.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::keep::{Attended, KeepError, Kept, SUMMARY, TRANSCRIPT, make_durable};
use crate::attachments::{Attachment, LeftOut, MappedRoot, Reply, attach};
use crate::raw_path::escape;

/// The name of the reply among a run's artifacts.
pub const REPLY: &str = "reply";

/// An agent's answer to a message, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReply {
    /// What was said, and what comes with it.
    #[serde(flatten)]
    pub reply: Reply,
    /// The session of the agent's CLI, if it opened one.
    pub session_id: Option<String>,
    /// Whether that is one of an earlier message.
    pub resumed: bool,
}

impl Attended<'_> {
    /// Keeps the answer to a message. There is no diff: what the agent changed, it changed in its own folder.
    pub(crate) async fn keep_reply(
        self,
        direct: &Path,
        last_words: &str,
        session: Option<(&str, bool)>,
    ) -> Result<Kept, KeepError> {
        let (folder, transcript) = self.keep_transcript().await?;
        let mut words = last_words.to_owned();
        self.redactor.string(&mut words);
        let reply = {
            let (root, inside) = (direct.to_owned(), self.handover.target.0.clone());
            let (mask, into) = (self.claimed.request.policy.mask.clone(), folder.join("attachments"));
            tokio::task::spawn_blocking(move || {
                attach(&words, &MappedRoot { host: &root, inside: &inside, mask: &mask }, &into)
            })
        };
        let reply = reply.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        let mut files = vec![(TRANSCRIPT.to_owned(), transcript)];
        for attachment in &reply.attachments {
            let name = attachment.artifact.0.file_name().unwrap_or_default().to_string_lossy();
            files.push((format!("attachment/{name}"), attachment.artifact.0.clone()));
        }
        let text = format!("the agent worked in {} itself: there is no diff", escape(direct));
        let summary = json!({
            "text": text,
            "attachments": reply.attachments.iter().map(named).collect::<Vec<_>>(),
            "left_out": reply.left_out.iter().take(20).collect::<Vec<&LeftOut>>(),
            "left_out_count": reply.left_out.len(),
        });
        let (session_id, resumed) =
            session.map_or((None, false), |(id, resumed)| (Some(id.to_owned()), resumed));
        let kept = KeptReply { reply, session_id, resumed };
        let mut warnings = self.handover.warnings.clone();
        warnings.iter_mut().for_each(|warning| self.redactor.string(warning));
        let written = [
            (REPLY, folder.join("reply.json"), serde_json::to_string(&kept).map_err(io::Error::from)?),
            (SUMMARY, folder.join("summary.json"), json!({ "warnings": warnings }).to_string()),
        ];
        for (name, path, content) in written {
            fs::write(&path, content)?;
            files.push((name.to_owned(), path));
        }
        let artifacts = make_durable(folder, files).await?;
        Ok(Kept { summary, artifacts, diff: None })
    }
}

fn named(attachment: &Attachment) -> serde_json::Value {
    json!({ "named": attachment.named, "host_path": attachment.host_path, "bytes": attachment.bytes })
}

/// Reads a reply that was kept.
pub(crate) fn read_reply(path: &Path) -> Option<KeptReply> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
