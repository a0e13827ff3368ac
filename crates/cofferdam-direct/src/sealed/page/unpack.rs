//! What a server packed, unpacked up to a bound.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// What a page may be once it is unpacked. A bomb of 8 MiB unpacks to 8 GiB.
const MOST_BYTES: u64 = 16 << 20;

/// The page's bytes.
pub(super) fn unpack(path: &Path, encoding: Option<&str>) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| format!("the page cannot be read: {}", error.kind()))?;
    let packed = BufReader::new(file);
    let mut bytes = Vec::new();
    let unpacked = match encoding.map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        None | Some("" | "identity") => read(packed, &mut bytes),
        // Some servers send several streams one after the other.
        Some("gzip" | "x-gzip") => read(flate2::bufread::MultiGzDecoder::new(packed), &mut bytes),
        Some(_) => return Err("the server packed the page in a way that was not asked for".to_owned()),
    };
    match unpacked {
        Ok(()) if bytes.len() as u64 > MOST_BYTES => {
            Err(format!("the page is larger than {} MiB once it is unpacked", MOST_BYTES >> 20))
        }
        Ok(()) => Ok(bytes),
        Err(error) => Err(format!("the page is packed wrongly: {error}")),
    }
}

fn read(source: impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    source.take(MOST_BYTES + 1).read_to_end(bytes).map(drop)
}
