//! Which tools the model has.

use super::AskOptions;
use crate::direct::DirectTool;
use crate::egress::VendorTool;
use crate::run_input::overrides::check_items;
use crate::run_input::{InputError, InputSyntax};
use crate::settings::{ToolSettings, WebSearch};

const ALLOWED: &str = "options.allowed_tools";
const DISALLOWED: &str = "options.disallowed_tools";

/// What a conversation may hold of a project.
#[derive(Debug, Clone, Copy)]
pub(super) struct Project {
    /// Whether the run has one, whose files it may read.
    pub(super) has_files: bool,
    /// Whether its text may be in the conversation: its own, or that of a run before it.
    pub(super) has_text: bool,
}

/// The tools that the model has, each once and in their order. What the settings close is left out where nobody named it, and
/// refused where somebody did. A run on a project that names none reads the project and nothing else.
pub(super) fn tools_of(
    options: &AskOptions,
    project: Project,
    settings: &ToolSettings,
    syntax: InputSyntax,
) -> Result<Vec<DirectTool>, InputError> {
    let disallowed = named(DISALLOWED, &options.disallowed_tools)?;
    let is_wanted = |tool: &DirectTool| !disallowed.contains(tool);
    let mut tools: Vec<DirectTool> = match &options.allowed_tools {
        Some(names) => {
            let tools = named(ALLOWED, names)?.into_iter().filter(is_wanted);
            tools.map(|tool| open(tool, project, settings, syntax)).collect::<Result<_, _>>()?
        }
        None => {
            let default: &[DirectTool] =
                if project.has_files { &DirectTool::OF_PROJECT } else { &DirectTool::DEFAULT };
            let tools = default.iter().copied().filter(is_wanted);
            tools.filter(|tool| open(*tool, project, settings, syntax).is_ok()).collect()
        }
    };
    tools.sort_unstable();
    tools.dedup();
    Ok(tools)
}

/// What the vendor runs for these tools.
pub(super) fn of_vendor(tools: &[DirectTool], settings: &ToolSettings) -> Vec<VendorTool> {
    match tools.contains(&DirectTool::WebSearch) && settings.web_search == WebSearch::Vendor {
        true => vec![VendorTool::WebSearch],
        false => Vec::new(),
    }
}

fn named(field: &'static str, names: &[String]) -> Result<Vec<DirectTool>, InputError> {
    check_items(field, names.len())?;
    names.iter().map(|name| name.parse().map_err(|error| InputError::of_value(field, error))).collect()
}

/// The tool, if the run may have it.
fn open(
    tool: DirectTool,
    project: Project,
    settings: &ToolSettings,
    syntax: InputSyntax,
) -> Result<DirectTool, InputError> {
    let refuse = |problem: &str, hint: String| {
        Err(InputError::conflict(ALLOWED, format!("{}: {problem}", syntax.name(ALLOWED)), hint))
    };
    match tool {
        _ if tool.reads_project() && !project.has_files => refuse(
            &format!("`{tool}` reads a project's files, and there is no project"),
            format!("name one with {}, or leave the tool out", syntax.name("project_id")),
        ),
        DirectTool::WebFetch if project.has_text && !settings.may_fetch_beside_project() => refuse(
            "`WebFetch` could carry a project's text to any page",
            "leave it out, or ask the operator to list hosts in tools.web_fetch.allow".to_owned(),
        ),
        DirectTool::WebSearch if settings.web_search == WebSearch::Off => refuse(
            "`WebSearch` is off",
            "leave it out, or ask the operator to set tools.web_search".to_owned(),
        ),
        tool => Ok(tool),
    }
}
