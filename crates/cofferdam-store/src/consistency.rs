//! What must be true of every record, whatever happened to the processes that wrote it.

/// Something in the record that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// With what: a run, a spec, or the database itself.
    pub subject: String,
}

/// How the database itself is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// Which database it is, such as `SQLite 3.50.2`.
    pub database: String,
    /// The version of its schema.
    pub schema_version: u32,
    /// What is wrong; nothing, if all is well.
    pub problems: Vec<Problem>,
}

/// A rule of the record: a question in the SQL that both databases speak, whose answers are the runs, or specs, that break it.
pub(crate) struct Rule {
    pub(crate) what: &'static str,
    pub(crate) broken_by: &'static str,
}

impl Rule {
    /// A run or a spec breaks it.
    pub(crate) fn problem(&self, subject: String) -> Problem {
        Problem { what: self.what.to_owned(), subject }
    }
}

/// Runs whose events were forgotten since have two at most: the first, and the one that ended them.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        what: "its events are not numbered from 1 without gaps",
        broken_by: "SELECT runs.id FROM runs LEFT JOIN (SELECT run, count(*) AS count, min(seq) AS first, \
            max(seq) AS last FROM events GROUP BY run) AS numbered ON numbered.run = runs.id \
            WHERE numbered.run IS NULL OR numbered.first <> 1 \
            OR (numbered.count <> numbered.last OR numbered.last <> runs.last_seq) \
            AND NOT (runs.finished_at IS NOT NULL AND numbered.count <= 2)",
    },
    Rule {
        what: "it is running and nobody holds it, or it is held and not running",
        broken_by: "SELECT id FROM runs WHERE (state = 'running') <> (lease_node IS NOT NULL) \
            OR (state = 'running') <> (lease_expires_at_ms IS NOT NULL)",
    },
    Rule {
        what: "it has ended without an outcome or a time, or has one and has not ended",
        broken_by: "SELECT id FROM runs WHERE (state IN ('queued', 'running')) <> (finished_at IS NULL) \
            OR (state IN ('queued', 'running')) <> (outcome IS NULL)",
    },
    Rule {
        what: "it does not have one `run.finished` if it has ended, or has one if it has not",
        broken_by: "SELECT runs.id FROM runs LEFT JOIN (SELECT run, count(*) AS count FROM events \
            WHERE type = 'run.finished' GROUP BY run) AS ends ON ends.run = runs.id \
            WHERE coalesce(ends.count, 0) <> CASE WHEN runs.finished_at IS NULL THEN 0 ELSE 1 END",
    },
    Rule {
        what: "its attempts are not those that were counted",
        broken_by: "SELECT runs.id FROM runs LEFT JOIN (SELECT run, count(*) AS count, max(number) AS last \
            FROM attempts GROUP BY run) AS tried ON tried.run = runs.id \
            WHERE coalesce(tried.count, 0) <> runs.attempts OR coalesce(tried.last, 0) <> runs.attempts",
    },
    Rule {
        what: "an attempt is under way that is not the run's last, or whose run is not running",
        broken_by: "SELECT DISTINCT runs.id FROM runs JOIN attempts ON attempts.run = runs.id \
            WHERE attempts.ended_at IS NULL AND (attempts.number <> runs.attempts OR runs.state <> 'running')",
    },
    Rule {
        what: "its token is lower than its attempts",
        broken_by: "SELECT id FROM runs WHERE token < attempts",
    },
    Rule {
        what: "a message still waits although it has ended",
        broken_by: "SELECT DISTINCT runs.id FROM runs JOIN messages ON messages.run = runs.id \
            WHERE messages.state = 'accepted' AND runs.finished_at IS NOT NULL",
    },
    Rule {
        what: "it is marked as a dead letter and has none, or has one and is not marked",
        broken_by: "SELECT runs.id FROM runs LEFT JOIN dead_letters ON dead_letters.run = runs.id \
            WHERE (dead_letters.run IS NOT NULL) <> (CASE WHEN runs.dead_letter THEN 1 ELSE 0 END = 1)",
    },
    Rule {
        what: "it is a run of a spec that is not on record",
        broken_by: "SELECT runs.id FROM runs LEFT JOIN specs ON specs.id = runs.spec \
            WHERE runs.spec IS NOT NULL AND specs.id IS NULL",
    },
    Rule {
        what: "its versions are not numbered from 1 to that of the spec",
        broken_by: "SELECT specs.id FROM specs LEFT JOIN (SELECT spec, count(*) AS count, max(number) AS last \
            FROM spec_versions GROUP BY spec) AS written ON written.spec = specs.id \
            WHERE coalesce(written.count, 0) <> specs.version OR coalesce(written.last, 0) <> specs.version",
    },
];
