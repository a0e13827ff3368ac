//! The versions of the schema. Up to version 4 each database has its own; from version 5 on there is one list for both.

/// What brings the schema to a version, in the words of each database.
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Migration {
    /// One text that both databases understand.
    const fn same(version: i64, text: &'static str) -> Self {
        Self { version, sqlite: text, postgres: text }
    }
}

/// In order, each one version after the one before. Released ones are never edited.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration::same(5, include_str!("../migrations/0005_runs_by_end.sql")),
    Migration {
        version: 6,
        sqlite: include_str!("../migrations/sqlite/0006_owners.sql"),
        postgres: include_str!("../migrations/postgres/0006_owners.sql"),
    },
    Migration {
        version: 7,
        sqlite: include_str!("../migrations/sqlite/0007_removed.sql"),
        postgres: include_str!("../migrations/postgres/0007_removed.sql"),
    },
    Migration::same(8, include_str!("../migrations/0008_system.sql")),
    Migration {
        version: 9,
        sqlite: include_str!("../migrations/sqlite/0009_processes.sql"),
        postgres: include_str!("../migrations/postgres/0009_processes.sql"),
    },
    Migration {
        version: 10,
        sqlite: include_str!("../migrations/sqlite/0010_turns.sql"),
        postgres: include_str!("../migrations/postgres/0010_turns.sql"),
    },
    Migration {
        version: 11,
        sqlite: include_str!("../migrations/sqlite/0011_specs.sql"),
        postgres: include_str!("../migrations/postgres/0011_specs.sql"),
    },
    Migration::same(12, include_str!("../migrations/0012_claims.sql")),
];

/// The newest version that this program knows.
pub(crate) const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_each_other() {
        let versions: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
        assert_eq!(versions, (5..=NEWEST).collect::<Vec<_>>());
    }
}
