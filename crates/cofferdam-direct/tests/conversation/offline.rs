//! Tools that need no network and have the names of the agent SDK's, over a folder of the test's own. The real ones read in
//! a sandbox; here it is about the conversation alone, which sees of a tool only its answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_direct::{Tool, ToolResult};
use serde_json::{Value, json};

/// All of them.
pub(crate) fn tools(folder: &Path) -> Vec<Arc<dyn Tool>> {
    let names = ["TodoWrite", "Read", "Grep", "Glob"];
    names.map(|name| Arc::new(Offline { name, folder: folder.to_owned() }) as Arc<dyn Tool>).into()
}

struct Offline {
    name: &'static str,
    folder: PathBuf,
}

#[async_trait]
impl Tool for Offline {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self) -> Value {
        json!({ "name": self.name, "description": "Reads.", "input_schema": { "type": "object" } })
    }

    async fn call(&self, input: Value) -> ToolResult {
        let wanted = match self.name {
            "Read" => "file_path",
            "TodoWrite" => "todos",
            _ => "pattern",
        };
        match (self.name, &input[wanted]) {
            (_, Value::Null) => ToolResult::error(format!("`{wanted}` is missing")),
            ("Read", path) => {
                match std::fs::read_to_string(self.folder.join(path.as_str().unwrap_or_default())) {
                    Ok(text) => ToolResult::text(text),
                    Err(error) => ToolResult::error(error.to_string()),
                }
            }
            _ => ToolResult::text("done"),
        }
    }
}
