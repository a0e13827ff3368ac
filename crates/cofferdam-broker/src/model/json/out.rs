//! Where what was read is written.

use super::fault::Fault;
use crate::memory::{Room, Rope, Segment};

/// The most that is kept apart: the options of a stream have one field or two.
const MOST_APART: usize = 4 << 10;

/// What is written: into room that was set aside, or nowhere, to find how much that would be.
pub(crate) struct Out {
    room: Option<Room>,
    rope: Rope,
    len: usize,
    peak: usize,
    muted: bool,
    apart: Option<Vec<u8>>,
}

impl Out {
    /// Writes into this room.
    pub(crate) fn into(room: Room) -> Self {
        Self { room: Some(room), ..Self::nowhere() }
    }

    /// Writes nothing, and counts.
    pub(crate) fn nowhere() -> Self {
        Self { room: None, rope: Rope::default(), len: 0, peak: 0, muted: false, apart: None }
    }

    /// The most that was written at a time.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// What was written.
    pub(crate) fn into_rope(self) -> Rope {
        self.rope
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.muted {
            return Ok(());
        }
        if let Some(apart) = &mut self.apart {
            if apart.len() + bytes.len() > MOST_APART {
                return Err(Fault::Beyond("its `stream_options` are longer than 4 KiB"));
            }
            apart.extend_from_slice(bytes);
            return Ok(());
        }
        self.len += bytes.len();
        self.peak = self.peak.max(self.len);
        match &mut self.room {
            // What is written is never longer than what was read, but for a little that is set aside too.
            Some(room) => self.rope.push(bytes, room).map_err(|_| Fault::TooLarge { limit: self.len as u64 }),
            None => Ok(()),
        }
    }

    /// Forgets what was written after this.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            if let Some(room) = &mut self.room {
                self.rope.truncate(len, room);
            }
        }
    }

    /// Takes a segment that was read, to be written again.
    pub(super) fn reuse(&mut self, segment: Segment) {
        if let Some(room) = &mut self.room {
            room.reuse(segment);
        }
    }

    /// Writes nothing from now on, or writes again. Says how it was.
    pub(super) fn mute(&mut self, muted: bool) -> bool {
        std::mem::replace(&mut self.muted, muted)
    }

    /// What is written from now on is kept apart, until it is taken.
    pub(super) fn begin_apart(&mut self) {
        self.apart = Some(Vec::new());
    }

    pub(super) fn take_apart(&mut self) -> Vec<u8> {
        self.apart.take().unwrap_or_default()
    }
}
