use rusqlite::Connection;

use super::{FIRST_CLAIMABLE, IS_BEHIND};
use crate::Store;
use crate::session::Sql;

/// How SQLite looks at the other runs, for each of the probes.
async fn probes(sql: Sql) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cofferdam.db");
    drop(Store::open_sqlite(&path).await.expect("it opens"));
    let connection = Connection::open(&path).expect("it opens");
    let explained = format!("EXPLAIN QUERY PLAN {}", sql.for_sqlite());
    let mut statement = connection.prepare(&explained).expect("every index is there");
    let steps =
        statement.raw_query().mapped(|row| row.get::<_, String>("detail")).collect::<Result<Vec<_>, _>>();
    steps.expect("it is explained").into_iter().filter(|step| step.contains(" other ")).collect()
}

/// A claim holds up every other write, and a run that has ended must cost it nothing.
#[tokio::test]
async fn a_claim_looks_at_runs_that_have_not_ended_alone() {
    let of_conversation = "SEARCH other USING COVERING INDEX runs_live_in_conversation \
                           (conversation=? AND state=? AND rowid<?)";
    let of_folder = "SEARCH other USING INDEX runs_by_state (state=?)";
    assert_eq!(probes(IS_BEHIND).await, [of_conversation, of_folder]);
    assert_eq!(
        probes(FIRST_CLAIMABLE).await,
        [
            of_conversation,
            of_folder,
            "SEARCH other USING COVERING INDEX runs_under_way (lane=? AND owner=?)",
            "SCAN other USING COVERING INDEX runs_under_way",
            "SCAN other USING COVERING INDEX runs_under_way",
        ]
    );
}
