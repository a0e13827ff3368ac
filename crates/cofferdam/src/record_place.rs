//! Where the record of runs is and the files that they leave, and how they are opened.

use std::time::Duration;

use cofferdam_core::{ArtifactSettings, StorePooler, StoreSettings, with_causes};
use cofferdam_runner::Home;
use cofferdam_store::{
    ArtifactStore, BucketKeys, BucketOptions, OpenError, Pooler, PostgresOptions, Store, StoreOptions,
};

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

/// Where the files are that runs leave: as the state folder's own settings say.
pub(crate) fn open_artifacts(home: &Home, caller: &Caller) -> Result<ArtifactStore, Failure> {
    let ArtifactSettings { url, endpoint, region } = settings::read_in(home.root())?.artifacts;
    let Some(url) = url else { return Ok(ArtifactStore::Folder) };
    let key = |name: &str| caller.var(name).and_then(|value| value.to_str()).map(str::to_owned);
    let needed = |name: &str| {
        key(name).ok_or_else(|| {
            Failure::new(ExitCode::Refused, format!("{url} cannot be opened: the variable {name} is not set"))
                .hint("export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or remove `artifacts.url`")
        })
    };
    let keys = BucketKeys {
        access_key_id: needed("AWS_ACCESS_KEY_ID")?,
        secret_access_key: needed("AWS_SECRET_ACCESS_KEY")?,
        session_token: key("AWS_SESSION_TOKEN"),
    };
    let options = BucketOptions { url: url.clone(), endpoint, region: region.to_string(), keys };
    ArtifactStore::bucket(&options).map_err(|error| Failure::new(ExitCode::Refused, with_causes(&error)))
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
