//! `cofferdam settings import`: the settings of TinyClaw as ours.

use std::path::PathBuf;

use clap::Args;
use cofferdam_core::{Added, Imported, KeyPath, add_setting, import};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::{sanitize, settings, terminal};

/// Print what the settings.json of TinyClaw becomes here, and say what is left out and why
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Add them to the settings of the state folder; what is set there stays as it is
    #[arg(long)]
    write: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Imports them.
pub(crate) fn run(args: &ImportArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let path = caller.resolve(&args.file);
    let refuse = |why: &str| {
        let hint = "name a settings.json of TinyClaw, such as ~/.tinyclaw/settings.json";
        UsageError::new(format!("{} cannot be used: {why}", path.display()), hint)
    };
    let text = settings::foreign_text(&path).map_err(|why| refuse(&why))?;
    let imported = import(&text).map_err(|error| refuse(&error.to_string()))?;
    let kept = if args.write { write(&imported, caller)? } else { Vec::new() };
    if args.json {
        terminal::write_json(&to_json(&imported, &kept, args.write))?;
        return Ok(ExitCode::Succeeded);
    }
    terminal::write_stdout(format!("{:#}\n", imported.tree()).as_bytes())?;
    for left in &imported.left_out {
        let line = sanitize::line(&format!("{}: {}", left.path, left.why));
        terminal::write_stderr(&format!("cofferdam: left out {line}\n"));
    }
    for path in &kept {
        let path = sanitize::line(&path.to_string());
        terminal::write_stderr(&format!("cofferdam: kept {path} as it is in your settings\n"));
    }
    terminal::write_stderr(match args.write {
        true => "cofferdam: the rest is in your settings now; `cofferdam sandbox show` tells what holds\n",
        false => "cofferdam: nothing was written; add --write to add this to your settings\n",
    });
    Ok(ExitCode::Succeeded)
}

/// Adds each key to the settings of the state folder. Returns those that were set there already.
fn write(imported: &Imported, caller: &Caller) -> Result<Vec<KeyPath>, Failure> {
    let mut kept = Vec::new();
    settings::change(&caller.open_state()?, |text| {
        let mut text = text.to_owned();
        for (path, value) in &imported.settings {
            match add_setting(&text, path, value)? {
                Added::Text(changed) => text = changed,
                Added::IsThere => kept.push(path.clone()),
            }
        }
        Ok(text)
    })?;
    Ok(kept)
}

fn to_json(imported: &Imported, kept: &[KeyPath], is_written: bool) -> Value {
    let left = imported.left_out.iter();
    let left: Vec<Value> =
        left.map(|left| json!({ "key": left.path.to_string(), "why": left.why })).collect();
    let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
    json!({ "settings": imported.tree(), "left_out": left, "kept": kept, "written": is_written })
}
