//! Pieces of memory of one size.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::quota::Permits;

/// The size of a piece. A small request takes two of them; one of 64 MiB some two thousand.
pub(crate) const SEGMENT: usize = 32 << 10;

/// Buffers that were used and will be used again. None is given back to the allocator: which part of what it was given
/// back it then keeps, and for which thread, nobody could say, and so nobody could say how much the process takes.
/// There are never more than permits.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn list(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait for their next use.
    #[cfg(test)]
    pub(super) fn unused(&self) -> usize {
        self.list().len()
    }
}

/// A piece of a request. When it is dropped it is somebody else's.
pub(crate) struct Segment {
    bytes: Vec<u8>,
    buffers: Arc<Buffers>,
    /// After the buffer: whoever gets the permit finds it.
    _permits: Permits,
}

impl Segment {
    pub(super) fn new(buffers: &Arc<Buffers>, permits: Permits) -> Self {
        let used = buffers.list().pop();
        let bytes = used.unwrap_or_else(|| Vec::with_capacity(SEGMENT));
        Self { bytes, buffers: Arc::clone(buffers), _permits: permits }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes as much as fits, and says how much that was.
    pub(super) fn fill(&mut self, bytes: &[u8]) -> usize {
        let now = bytes.len().min(SEGMENT - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..now]);
        now
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

impl AsRef<[u8]> for Segment {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        // Nothing of it can be read by the next one.
        bytes.clear();
        self.buffers.list().push(bytes);
    }
}
