//! The text of a statement.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

/// A statement. Values are `?1`, `?2` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sql {
    sqlite: &'static str,
    postgres: &'static str,
    /// What PostgreSQL does to the rows that a writer reads.
    lock: &'static str,
}

/// Whether a statement is in a transaction that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    Reads,
    Writes,
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::same(text)
    }
}

impl Sql {
    /// A statement that both databases understand.
    pub(crate) const fn same(text: &'static str) -> Self {
        Self::differs(text, text)
    }

    /// A statement that the databases spell differently.
    pub(crate) const fn differs(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres, lock: "" }
    }

    /// The same statement; where PostgreSQL writes, it locks the rows that are read, with these words. In SQLite whoever
    /// writes is alone, and nobody locks anything to read.
    pub(crate) const fn locking(self, lock: &'static str) -> Self {
        Self { lock, ..self }
    }

    pub(crate) fn for_sqlite(self) -> &'static str {
        self.sqlite
    }

    /// The text for PostgreSQL, made once for each statement.
    pub(crate) fn for_postgres(self, access: Access) -> &'static str {
        static MADE: LazyLock<RwLock<HashMap<(Sql, Access), &'static str>>> = LazyLock::new(RwLock::default);
        let found = MADE.read().unwrap_or_else(PoisonError::into_inner).get(&(self, access)).copied();
        found.unwrap_or_else(|| {
            let mut made = MADE.write().unwrap_or_else(PoisonError::into_inner);
            // Statements are constants of this program, so there are never more than it has.
            made.entry((self, access)).or_insert_with(|| Box::leak(self.spell(access).into_boxed_str()))
        })
    }

    fn spell(self, access: Access) -> String {
        let mut text = self.postgres.replace('?', "$");
        if access == Access::Writes && !self.lock.is_empty() {
            text.push(' ');
            text.push_str(self.lock);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbered_as_each_database_numbers_them() {
        let sql = Sql::from("SELECT id FROM runs WHERE id = ?1 AND state = ?12");
        assert_eq!(sql.for_sqlite(), "SELECT id FROM runs WHERE id = ?1 AND state = ?12");
        assert_eq!(sql.for_postgres(Access::Reads), "SELECT id FROM runs WHERE id = $1 AND state = $12");
    }

    #[test]
    fn only_a_writer_locks_what_it_reads() {
        let sql = Sql::from("SELECT state FROM runs WHERE id = ?1").locking("FOR NO KEY UPDATE");
        assert_eq!(sql.for_postgres(Access::Reads), "SELECT state FROM runs WHERE id = $1");
        assert_eq!(
            sql.for_postgres(Access::Writes),
            "SELECT state FROM runs WHERE id = $1 FOR NO KEY UPDATE"
        );
        assert_eq!(sql.for_sqlite(), "SELECT state FROM runs WHERE id = ?1");
    }
}
