//! Where the record of runs is, and how it is opened.

use std::time::Duration;

use cofferdam_core::{StorePooler, StoreSettings, with_causes};
use cofferdam_runner::Home;
use cofferdam_store::{OpenError, Pooler, PostgresOptions, Store, StoreOptions};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::settings;

/// A run that is under way outlasts a database that is restarted or fails over.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens the record of runs.
pub(crate) async fn open_store(home: &Home, caller: &Caller) -> Result<Store, Failure> {
    let store = Store::open(&options(home, caller)?).await.map_err(|error| failure(&error))?;
    Ok(store.with_patience(PATIENCE))
}

/// Where it is: as the state folder's own settings and a variable say. The file of a repository has no say.
pub(crate) fn options(home: &Home, caller: &Caller) -> Result<StoreOptions, Failure> {
    let StoreSettings { url, listen_url, pooler, max_connections } = settings::store(caller, home.root())?;
    let Some(url) = url else { return Ok(StoreOptions::Sqlite(home.database())) };
    let pooler = match pooler {
        StorePooler::None => Pooler::None,
        StorePooler::Transaction => Pooler::Transactions,
    };
    let max_connections = max_connections.count().try_into().unwrap_or(PostgresOptions::MAX_CONNECTIONS);
    Ok(StoreOptions::Postgres(PostgresOptions { url, listen_url, pooler, max_connections }))
}

fn failure(error: &OpenError) -> Failure {
    let failure = Failure::new(ExitCode::Refused, with_causes(error));
    match error {
        OpenError::NetworkFileSystem { .. } => {
            failure.hint("export COFFERDAM_HOME=/a/folder/on/a/local/disk, or use PostgreSQL: `store.url`")
        }
        OpenError::Unreachable { .. } | OpenError::Address { .. } => {
            failure.hint("look at `store.url` in the settings, or at the variable COFFERDAM_STORE_URL")
        }
        OpenError::NewerSchema { .. } => failure.hint("use the newer program"),
        OpenError::File { .. } | OpenError::Database(_) => failure,
    }
}
