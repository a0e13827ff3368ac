//! The tools of a direct run, on this side of their walls: which it has, and the sandbox in which they read what strangers
//! wrote.

mod sealed;

use std::sync::Arc;

use cofferdam_core::{DirectSetup, DirectTool, ToolSettings, WebSearch};
use cofferdam_direct::tools::{self, WebFetch};
use cofferdam_direct::{ModelClient, Tool, Tools};
use cofferdam_sandbox::CreateError;
use cofferdam_store::Claimed;

use crate::node::Node;
use crate::workspace::Prepared;
use sealed::Sealed;

/// The tools of one attempt.
pub(crate) struct ToolBox(Arc<Sealed>);

/// Why the tools of a run cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolsError {
    /// There is no sandbox for them. A project that cannot be layered can be copied.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The sandbox does not work.
    #[error("failed to read the project in a sealed tool: {0}")]
    Trial(String),
}

impl ToolBox {
    /// Tools for a run without a project.
    pub(crate) fn new(node: &Node, claimed: &Claimed) -> Self {
        Self(Arc::new(Sealed::new(node, claimed, None)))
    }

    /// Tools that read a project. They are tried at once: a project that cannot be read is found out before the model is asked.
    ///
    /// # Errors
    /// [`ToolsError`] if it cannot be read.
    pub(crate) async fn with_project(
        node: &Node,
        claimed: &Claimed,
        project: &Prepared,
    ) -> Result<Self, ToolsError> {
        let sealed = Sealed::new(node, claimed, Some(project));
        sealed.try_project().await?;
        Ok(Self(Arc::new(sealed)))
    }

    /// What the model is offered. What is asked of a page is answered by the same model.
    pub(crate) fn tools(&self, node: &Node, setup: &DirectSetup, model: &ModelClient) -> Tools {
        tools_of(node, setup, &self.0, model)
    }
}

fn tools_of(node: &Node, setup: &DirectSetup, sealed: &Arc<Sealed>, model: &ModelClient) -> Tools {
    let mut found = Tools::default();
    for tool in DirectTool::ALL {
        let allowed = setup.tools.contains(&tool) && !is_closed(tool, setup, &node.tool_settings);
        match own(tool, node, setup, sealed, model) {
            _ if !allowed => found.forbidden.push(tool.to_string()),
            Some(own) => found.own.push(own),
            None => found.of_vendor.push(tools::vendor_search()),
        }
    }
    found
}

/// Whether this node's settings close a tool that the run was accepted with: they may have changed since, or be another node's.
fn is_closed(tool: DirectTool, setup: &DirectSetup, settings: &ToolSettings) -> bool {
    match tool {
        DirectTool::WebFetch => setup.has_project && !settings.may_fetch_beside_project(),
        DirectTool::WebSearch => settings.web_search == WebSearch::Off,
        DirectTool::TodoWrite | DirectTool::Read | DirectTool::Grep | DirectTool::Glob => false,
    }
}

/// A tool of ours; `None` if it is the vendor's.
fn own(
    tool: DirectTool,
    node: &Node,
    setup: &DirectSetup,
    sealed: &Arc<Sealed>,
    model: &ModelClient,
) -> Option<Arc<dyn Tool>> {
    let own: Arc<dyn Tool> = match tool {
        DirectTool::WebFetch => {
            let allow = node.tool_settings.web_fetch.allow.clone();
            let (sealed, model, name) = (sealed.clone(), model.clone(), setup.model.clone());
            Arc::new(WebFetch::new(node.dialer.clone(), allow, sealed, model, name))
        }
        DirectTool::WebSearch => match &node.tool_settings.web_search {
            WebSearch::Endpoint(endpoint) => {
                Arc::new(tools::WebSearch::new(node.dialer.clone(), endpoint.clone()))
            }
            WebSearch::Vendor | WebSearch::Off => return None,
        },
        DirectTool::TodoWrite => Arc::new(tools::TodoWrite),
        DirectTool::Read => Arc::new(tools::Read(sealed.clone())),
        DirectTool::Grep => Arc::new(tools::Grep(sealed.clone())),
        DirectTool::Glob => Arc::new(tools::Glob(sealed.clone())),
    };
    Some(own)
}
