//! What an answer looks like: text for people, one object for programs.

use cofferdam_runner::RunReport;
use cofferdam_runner::attachments::Reply;
use serde_json::{Value, json};

use crate::commands::run::{Tally, to_json as run_to_json};
use crate::failure::Failure;
use crate::{sanitize, terminal};

/// Prints the answer and the files that come with it. The text is an agent's: no terminal obeys it.
pub(crate) fn print(reply: &Reply) -> Result<(), Failure> {
    let mut shown = Vec::new();
    let written = sanitize::write_escaped(&mut shown, text_of(reply).as_bytes());
    terminal::stdout_result(written)?;
    terminal::write_stdout(&shown)
}

fn text_of(reply: &Reply) -> String {
    let mut text = reply.text.clone();
    if !text.is_empty() {
        text.push('\n');
    }
    for attachment in &reply.attachments {
        let (host, kept) = (attachment.host_path.0.display(), attachment.artifact.0.display());
        text.push_str(&format!("\nattached: {host}\n    kept: {kept}\n"));
    }
    text
}

/// The object of `--json`: that of `run`, with the reply.
pub(crate) fn to_json(report: &RunReport, tally: &Tally) -> Result<Value, Failure> {
    let mut object = run_to_json(report, tally, None)?;
    if let Some(fields) = object.as_object_mut() {
        // There is none, and an empty one would say that nothing was changed.
        fields.retain(|key, _| !key.starts_with("diff"));
    }
    object["reply"] = json!(report.reply);
    Ok(object)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cofferdam_runner::attachments::Attachment;
    use cofferdam_runner::raw_path::RawPath;

    use super::*;

    #[test]
    fn a_reply_names_each_file_and_where_it_is_kept() {
        let attachment = Attachment {
            named: "/workspace/a.png".to_owned(),
            host_path: RawPath(Path::new("/srv/coder/a.png").to_owned()),
            artifact: RawPath(Path::new("/state/runs/r/1/attachments/01-a.png").to_owned()),
            bytes: 3,
        };
        let reply = Reply { text: "Here.".to_owned(), attachments: vec![attachment], left_out: Vec::new() };
        insta::assert_snapshot!(text_of(&reply), @r"
        Here.

        attached: /srv/coder/a.png
            kept: /state/runs/r/1/attachments/01-a.png
        ");
    }
}
