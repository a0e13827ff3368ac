//! Takes secrets out of a patch.

use std::io::{self, Read, Write};

use cofferdam_core::Redactor;

/// Copies a patch without secrets, and says whether there were any.
pub(super) fn redact_patch(
    mut patch: impl Read,
    target: &mut impl Write,
    redactor: &Redactor,
) -> io::Result<bool> {
    let mut redacted = redactor.patch_stream();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match patch.read(&mut buffer)? {
            0 => break,
            count => target.write_all(&redacted.push(&buffer[..count]))?,
        }
    }
    target.write_all(&redacted.finish())?;
    Ok(redacted.has_redacted())
}
