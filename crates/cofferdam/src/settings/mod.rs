//! The caller's settings: `settings.json` in the state folder, the repository's own under the rule of trust, and
//! variables, one over the other.

mod environment;
mod files;
mod prices;
mod trust;
mod trust_list;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Once;

use cofferdam_core::{Effective, Layer, Origin, Refused, Settings, StoreSettings, read_layer, tighten};

pub(crate) use self::environment::{docker, service};
pub(crate) use self::files::{LocalFile, foreign_text, local_file};
pub(crate) use self::prices::prices;
pub(crate) use self::trust::TrustRecord;
pub(crate) use self::trust_list::trust_list;
pub(crate) use self::write::{change, set_mode};
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{repository, sanitize, terminal};

/// Keys that are named in the warning; the rest is counted.
const MOST_KEYS: usize = 32;

/// What holds, and what came of the repository's own file.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The values, with where each was set.
    pub(crate) effective: Effective,
    /// The repository's own file, if there is one.
    pub(crate) local: Option<Local>,
}

/// The settings file of a repository.
#[derive(Debug)]
pub(crate) struct Local {
    /// The file as it was read.
    pub(crate) file: LocalFile,
    /// Whether it was trusted as it is.
    pub(crate) is_trusted: bool,
    /// What it sets that would take effect if it were trusted, and does not.
    pub(crate) refused: Vec<Refused>,
}

/// The caller's settings, in the current folder. Says on stderr what was left out.
pub(crate) fn read(caller: &Caller) -> Result<Settings, Failure> {
    let loaded = load(caller, &local_folder(caller))?;
    loaded.warn();
    Ok(loaded.effective.settings)
}

/// The settings of a state folder alone.
pub(crate) fn read_in(folder: &Path) -> Result<Settings, Failure> {
    Ok(global(Some(folder))?.settings)
}

/// The settings of a service: those of the state folder and the variables. It works for many repositories, so that none
/// around the folder that it happens to be started in has a say.
pub(crate) fn read_for_service(caller: &Caller) -> Result<Effective, Failure> {
    let effective = global(caller.state_to_read()?.as_deref())?;
    let variables = environment::layer(caller, &effective)?;
    let mut effective = effective.under(&variables);
    effective.settings.service = service(caller, &effective.settings)?;
    Ok(effective)
}

/// Where the record of the runs of a state folder is: as its own file says, with a variable over it.
pub(crate) fn store(caller: &Caller, state: &Path) -> Result<StoreSettings, Failure> {
    let mut store = global(Some(state))?.settings.store;
    if let Some(url) = environment::store_url(caller)? {
        store.url = Some(url);
    }
    Ok(store)
}

/// The folder whose `.cofferdam/settings.json` counts: the root of the repository around the current folder, or the
/// current folder if there is none.
pub(crate) fn local_folder(caller: &Caller) -> PathBuf {
    repository::root_around(&caller.current_folder).unwrap_or_else(|| caller.current_folder.clone())
}

/// The caller's settings for work in a folder.
pub(crate) fn load(caller: &Caller, folder: &Path) -> Result<Loaded, Failure> {
    let state = caller.state_to_read()?;
    let mut effective = global(state.as_deref())?;
    let local = match local_file(folder, state.as_deref())? {
        None => None,
        Some(file) => {
            let record = TrustRecord::read(state.as_deref())?;
            let is_trusted = record.trusts(&file);
            let origin = if is_trusted { Origin::Local } else { Origin::Untrusted };
            let layer = layer_of(&file.text, &file.path, &origin(file.path.clone()))?;
            let (layer, refused) = match is_trusted {
                true => (layer, Vec::new()),
                false => tighten(&effective, &layer),
            };
            effective = effective.under(&layer);
            Some(Local { file, is_trusted, refused })
        }
    };
    let variables = environment::layer(caller, &effective)?;
    Ok(Loaded { effective: effective.under(&variables), local })
}

/// What of a repository's file takes effect once it is trusted.
pub(crate) fn gains(caller: &Caller, file: &LocalFile) -> Result<Vec<Refused>, Failure> {
    let layer = layer_of(&file.text, &file.path, &Origin::Untrusted(file.path.clone()))?;
    let effective = global(caller.state_to_read()?.as_deref())?;
    Ok(tighten(&effective, &layer).1)
}

impl Loaded {
    /// Says once what an untrusted file set in vain, and what to type.
    pub(crate) fn warn(&self) {
        static WARNED: Once = Once::new();
        if let Some(text) = self.local.as_ref().and_then(Local::warning) {
            WARNED.call_once(|| terminal::write_stderr(&text));
        }
    }
}

impl Local {
    fn warning(&self) -> Option<String> {
        let mut keys: Vec<String> = self.refused.iter().map(|refused| refused.path.to_string()).collect();
        // Names that a file makes up must not push out those that matter.
        keys.sort_by_key(|key| !key.starts_with("sandbox.") || key.starts_with("sandbox.policies."));
        if keys.is_empty() {
            return None;
        }
        let more = keys.len().saturating_sub(MOST_KEYS);
        keys.truncate(MOST_KEYS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let path = sanitize::line(&self.file.path.display().to_string());
        let keys = sanitize::line(&keys.join(", "));
        Some(format!(
            "cofferdam: WARNING: {path} came with the repository and is not trusted; left out: {keys}{more}\n\
             cofferdam: WARNING: read it, then type `cofferdam trust` to let it take effect\n"
        ))
    }
}

fn global(state: Option<&Path>) -> Result<Effective, Failure> {
    let Some(state) = state else { return Ok(Effective::default()) };
    let path = state.join("settings.json");
    match files::global_text(&path)? {
        None => Ok(Effective::default()),
        Some(text) => {
            let layer = layer_of(&text, &path, &Origin::Global(path.clone()))?;
            Ok(Effective::default().under(&layer))
        }
    }
}

fn layer_of(text: &str, path: &Path, origin: &Origin) -> Result<Layer, Failure> {
    read_layer(text, origin).map_err(|error| cannot_be_used(path, &error.to_string()))
}

/// A settings file that is wrong stops everything: what it would have closed would be open.
fn cannot_be_used(path: &Path, why: &str) -> Failure {
    Failure::new(ExitCode::Refused, format!("the settings in {} cannot be used: {why}", path.display()))
        .hint("correct the file, or move it away; `cofferdam settings schema` has every key")
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
