//! What an agent is told on the command line: its prompt, and lists of tools.

use std::io::Read;

use cofferdam_core::bounds::LONGEST_TASK_BYTES;

use crate::failure::UsageError;

/// The prompt; `-` reads it from stdin, as far as one may be long.
pub(crate) fn prompt_text(prompt: &str) -> Result<String, UsageError> {
    if prompt != "-" {
        return Ok(prompt.to_owned());
    }
    let refuse = |why: &str| {
        UsageError::new(
            format!("PROMPT: stdin cannot be read: {why}"),
            "type `cofferdam run \"make the tests pass\"`, or `-` to read it from stdin",
        )
    };
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST_TASK_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| refuse(&error.to_string()))?;
    match bytes.len() > LONGEST_TASK_BYTES {
        // It is too long however it goes on, and may be cut within a character.
        true => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        false => String::from_utf8(bytes).map_err(|_| refuse("it is not valid UTF-8")),
    }
}

/// The names in a list. A comma inside parentheses is part of a pattern.
pub(super) fn tools(list: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let names = list.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}
