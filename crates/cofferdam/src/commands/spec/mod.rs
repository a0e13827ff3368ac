//! `cofferdam spec …`: work that is thought through in phases, each checked by a gate.

mod args;
mod decide;
mod edit;
mod execute;
mod list;
mod show;
mod watch;

use cofferdam_core::SpecId;

pub(crate) use self::args::SpecArgs;
use self::args::{OneSpec, SpecCommand};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::{SpecRecords, SpecsHere};
use crate::terminal;

/// Does what was asked.
pub(crate) async fn run(args: &SpecArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    match args.server.called(caller)? {
        Some(called) => with(&called.client, &args.command).await,
        None => with(&SpecsHere::open(&caller.open_state()?, caller).await?, &args.command).await,
    }
}

async fn with(records: &dyn SpecRecords, command: &SpecCommand) -> Result<ExitCode, Failure> {
    match command {
        SpecCommand::Create(args) => edit::create(records, args).await,
        SpecCommand::List(args) => list::run(records, args).await,
        SpecCommand::Show(args) => show::run(records, args).await,
        SpecCommand::Update(args) => edit::update(records, args).await,
        SpecCommand::Execute(args) => execute::run(records, args).await,
        SpecCommand::Watch(one) => watch::run(records, &one.find(records).await?, one.json).await,
        SpecCommand::Approve(args) => decide::approve(records, args).await,
        SpecCommand::Reject(args) => decide::reject(records, args).await,
        SpecCommand::Cancel(one) => execute::cancel(records, one).await,
        SpecCommand::Export(one) => {
            let text = records.export(&one.find(records).await?).await?;
            terminal::write_stdout(text.as_bytes())?;
            Ok(ExitCode::Succeeded)
        }
    }
}

impl OneSpec {
    /// The spec that is meant: by its whole id, or a beginning or an end of it that no other spec has.
    async fn find(&self, records: &dyn SpecRecords) -> Result<SpecId, Failure> {
        if let Ok(id) = self.spec.parse() {
            return Ok(id);
        }
        let mut ids = Vec::new();
        for archived in [false, true] {
            let input = cofferdam_core::SpecListInput { archived: Some(archived), ..Default::default() };
            ids.extend(records.list(&input).await?.into_iter().map(|spec| spec.id));
        }
        Ok(resolve(&self.spec, &ids)?)
    }
}

fn resolve(text: &str, ids: &[SpecId]) -> Result<SpecId, UsageError> {
    let hint = "type `cofferdam spec list` to see the ids";
    let matches = |id: &&SpecId| {
        let body = id.as_str().trim_start_matches("spec_");
        let begins = id.as_str().starts_with(text) || body.starts_with(text);
        !text.is_empty() && (begins || body.ends_with(text))
    };
    let mut found = ids.iter().filter(matches);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id.clone()),
        (None, _) => Err(UsageError::new(format!("there is no spec `{text}`"), hint)),
        (Some(first), Some(second)) => {
            Err(UsageError::new(format!("`{text}` could be {first} or {second}"), "type more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_found_by_a_unique_beginning_or_end() {
        let ids = [SpecId::new(1_000_000_000_000, 1), SpecId::new(1_000_000_000_000, 2)];
        assert_eq!(resolve(ids[0].as_str(), &ids).unwrap(), ids[0]);
        assert_eq!(resolve("02", &ids).unwrap(), ids[1]);
        assert!(resolve("spec_", &ids).unwrap_err().to_string().contains(" could be "));
        for text in ["", "zzz"] {
            assert!(resolve(text, &ids).is_err(), "{text}");
        }
    }
}
