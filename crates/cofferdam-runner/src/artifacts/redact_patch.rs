//! Takes secrets out of a patch.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use cofferdam_core::{REDACTED, RedactedStream, Redactor};

use super::binary_hunks::hunks_with_secrets;

/// Copies a patch without secrets, and says whether there were any. A binary hunk with a secret in it is left
/// out as a whole: git has compressed it.
pub(super) fn redact_patch(
    mut patch: File,
    target: &mut impl Write,
    redactor: &Redactor,
) -> io::Result<bool> {
    if redactor.knows_nothing() {
        return io::copy(&mut patch, target).map(|_| false);
    }
    let hunks = hunks_with_secrets(BufReader::with_capacity(256 << 10, &patch), redactor)?;
    let mut redacted = redactor.patch_stream();
    let mut position = 0;
    for hunk in &hunks {
        patch.seek(SeekFrom::Start(position))?;
        copy(&mut (&patch).take(hunk.start - position), target, &mut redacted)?;
        target.write_all(&redacted.push(format!("{REDACTED}\n").as_bytes()))?;
        position = hunk.end;
    }
    patch.seek(SeekFrom::Start(position))?;
    copy(&mut patch, target, &mut redacted)?;
    target.write_all(&redacted.finish())?;
    Ok(redacted.has_redacted() || !hunks.is_empty())
}

fn copy(from: &mut impl Read, to: &mut impl Write, redacted: &mut RedactedStream) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&redacted.push(&buffer[..count]))?,
        }
    }
}

#[cfg(test)]
#[path = "redact_patch_tests.rs"]
mod tests;
