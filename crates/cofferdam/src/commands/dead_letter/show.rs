//! `cofferdam dead-letter show`.

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::KeptLetter;
use crate::{sanitize, terminal};

use super::list::to_json;

/// Shows one dead letter.
pub(crate) fn run(kept: &KeptLetter, json: bool) -> Result<ExitCode, Failure> {
    terminal::write_answer(json, || to_json(kept), || text(kept))?;
    Ok(ExitCode::Succeeded)
}

fn text(KeptLetter { run, letter, replay, .. }: &KeptLetter) -> String {
    let mut lines = vec![
        format!("run       {run}"),
        format!("failed    {}", sanitize::line(&letter.failed_at)),
        format!("class     {}", letter.error_class),
        format!("message   {}", sanitize::line(&letter.error_message)),
        format!("attempts  {} of at most {}", letter.attempt, letter.max_attempts),
    ];
    lines.push(match replay {
        Some(replay) => format!("replay    {}, {}", replay.run, replay.state),
        None => format!("replay    none; type `cofferdam dead-letter replay {run}`"),
    });
    lines.push("payload   what was asked, without secrets:".to_owned());
    let payload = serde_json::to_string_pretty(&letter.payload).unwrap_or_default();
    lines.extend(payload.lines().map(|line| format!("  {}", escaped(line))));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// JSON escapes control characters of its own accord, and deceptive ones not.
fn escaped(line: &str) -> String {
    let mut out = Vec::new();
    let _ = sanitize::write_escaped(&mut out, line.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::dead_letter::list::tests::kept;

    #[test]
    fn a_letter_says_why_it_failed_and_what_became_of_it() {
        insta::assert_snapshot!(text(&kept()), @r#"
        run       run_00000000000000000000000007
        failed    2024-02-29T12:34:56.007Z
        class     overloaded
        message   the model's server failed (529)
        attempts  3 of at most 3
        replay    run_00000000000000000000000008, succeeded
        payload   what was asked, without secrets:
          {
            "agent": {
              "prompt": "fix \u001b[2J it",
              "provider": "codex"
            }
          }
        "#);
    }
}
