//! `cofferdam keys …`: who may call the service.

use clap::{Args, Subcommand};
use cofferdam_core::{KeyId, KeyInput, Scopes, ValueError, iso_time};
use cofferdam_operations::Operations;
use cofferdam_store::KeyRecord;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::commands::ListArgs;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::record_place::open_store;
use crate::records::KeyRecords;
use crate::server::ServerFlag;
use crate::{sanitize, terminal};

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key; it is shown once
    Create(CreateArgs),
    /// List the keys, the oldest first
    List(ListArgs),
    /// Make a key open nothing any more
    Revoke(RevokeArgs),
}

/// The flags of `keys create`.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What it is for
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it opens: `read`, `run` and `system`, with commas between them
    #[arg(long, value_name = "SCOPES", default_value = "read,run")]
    scopes: String,
    /// Whom it acts for: runs belong to the owner, and outlive the key [default: its name]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The flags of `keys revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    /// The key's id, as `keys list` shows it; not the key
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The flags of every `keys` command.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
    #[command(flatten)]
    server: ServerFlag,
}

/// Does what was asked.
pub(crate) async fn run(args: &KeysArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    match args.server.called(caller)? {
        Some(called) => with(&called.client, &args.command).await?,
        None => {
            let store = open_store(&caller.open_state()?, caller).await?;
            let done = with(&Operations::for_own_use(store.clone()), &args.command).await;
            store.close().await;
            done?;
        }
    }
    Ok(ExitCode::Succeeded)
}

async fn with(records: &dyn KeyRecords, command: &KeysCommand) -> Result<(), Failure> {
    match command {
        KeysCommand::Create(args) => create(records, args).await,
        KeysCommand::List(args) => list(records, args).await,
        KeysCommand::Revoke(args) => revoke(records, args).await,
    }
}

async fn create(records: &dyn KeyRecords, args: &CreateArgs) -> Result<(), Failure> {
    let scopes: Scopes = args.scopes.parse().map_err(|error: ValueError| {
        UsageError::new(format!("--scopes {}", error.problem), "type some of `read,run,system`")
    })?;
    let name = args.name.trim().to_owned();
    let input = KeyInput { name, scopes, owner: args.owner.clone() };
    let made = records.create(&input).await?;
    let KeyInput { name, scopes, .. } = input;
    if args.json {
        let key = json!({ "id": made.id, "name": name, "scopes": scopes, "owner": made.owner,
            "key": made.key.reveal() });
        return terminal::write_json(&key);
    }
    let owner = sanitize::line(made.owner.as_str());
    terminal::write_stderr(&format!(
        "cofferdam: made {} ({scopes}) for the owner `{owner}`; it is shown this once:\n",
        made.id
    ));
    terminal::write_stdout(format!("{}\n", made.key.reveal()).as_bytes())
}

async fn list(records: &dyn KeyRecords, args: &ListArgs) -> Result<(), Failure> {
    let keys = records.list().await?;
    match args.json {
        true => terminal::write_json(&Value::Array(keys.iter().map(to_json).collect())),
        false if keys.is_empty() => {
            terminal::write_stderr("cofferdam: no keys yet; type `cofferdam keys create --name NAME`\n");
            Ok(())
        }
        false => terminal::write_stdout(table(&keys).as_bytes()),
    }
}

async fn revoke(records: &dyn KeyRecords, args: &RevokeArgs) -> Result<(), Failure> {
    // Whoever typed the key itself does not see it again in an error.
    let id: KeyId = args.id.parse().map_err(|_| {
        UsageError::new("this is not the id of a key", "type `cofferdam keys list` to see the ids")
    })?;
    records.revoke(&id).await?;
    match args.json {
        true => terminal::write_json(&json!({ "id": id, "revoked": true })),
        false => {
            terminal::write_stderr(&format!("cofferdam: {id} opens nothing any more\n"));
            Ok(())
        }
    }
}

fn table(keys: &[KeyRecord]) -> String {
    let mut text =
        format!("{:<30}  {:<15}  {:<24}  {:<24}  {:<16}  NAME\n", "KEY", "SCOPES", "MADE", "USED", "OWNER");
    for key in keys {
        let used = match (key.revoked_at_ms, key.used_at_ms) {
            (Some(_), _) => "revoked".to_owned(),
            (None, Some(used)) => iso_time(used),
            (None, None) => "never".to_owned(),
        };
        text.push_str(&format!(
            "{:<30}  {:<15}  {:<24}  {used:<24}  {:<16}  {}\n",
            key.id.as_str(),
            key.scopes.to_string(),
            iso_time(key.created_at_ms),
            sanitize::line(key.owner.as_str()),
            sanitize::line(&key.name),
        ));
    }
    text
}

fn to_json(key: &KeyRecord) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "scopes": key.scopes,
        "owner": key.owner,
        "created_at_ms": key.created_at_ms,
        "used_at_ms": key.used_at_ms,
        "revoked_at_ms": key.revoked_at_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_a_key_from_one_that_was_revoked() {
        let key = |number: u128, used_at_ms, revoked_at_ms| KeyRecord {
            id: KeyId::new(0, number),
            name: "ci\x1b[2J".to_owned(),
            scopes: "read,run".parse().unwrap(),
            owner: "ops".parse().unwrap(),
            created_at_ms: 0,
            used_at_ms,
            revoked_at_ms,
        };
        let keys = [key(1, None, None), key(2, Some(60_000), None), key(3, Some(60_000), Some(70_000))];
        insta::assert_snapshot!(table(&keys), @r"
        KEY                             SCOPES           MADE                      USED                      OWNER             NAME
        key_00000000000000000000000001  read,run         1970-01-01T00:00:00.000Z  never                     ops               ci
        key_00000000000000000000000002  read,run         1970-01-01T00:00:00.000Z  1970-01-01T00:01:00.000Z  ops               ci
        key_00000000000000000000000003  read,run         1970-01-01T00:00:00.000Z  revoked                   ops               ci
        ");
    }
}
