//! A page of what may be long.

/// In a statement the number itself is needed.
macro_rules! most_page_bytes {
    () => {
        4_194_304
    };
}
pub(crate) use most_page_bytes;

/// A page ends with the row that brings it to so many bytes: rows of a mebibyte each would make the answer to one question as large
/// as the machine's memory.
pub const MOST_PAGE_BYTES: usize = most_page_bytes!();

/// Rows in their order: one at least, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// How long what is large in them is together.
    pub bytes: usize,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), bytes: 0 }
    }
}

impl<T> Page<T> {
    /// Whether there may be more after it, of which at most `limit` were asked for. A full one may be the last as well, and then the
    /// next one is empty.
    #[must_use]
    pub fn is_full(&self, limit: u32) -> bool {
        self.is_long() || u32::try_from(self.rows.len()).is_ok_and(|read| read >= limit)
    }

    /// Whether it has as many bytes as it may.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.bytes >= MOST_PAGE_BYTES
    }

    /// Adds a row of so many bytes.
    pub(crate) fn push(&mut self, (row, bytes): (T, usize)) {
        self.rows.push(row);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}
