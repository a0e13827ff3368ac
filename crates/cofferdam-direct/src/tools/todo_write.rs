//! `TodoWrite`: the model's own list. It is kept where every call is, in the conversation and its events.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input;
use crate::tool::{Tool, ToolResult};

/// Items of one list.
const MOST_ITEMS: usize = 200;

/// The tool.
#[derive(Debug, Clone, Copy)]
pub struct TodoWrite;

#[derive(Deserialize)]
struct Input {
    todos: Vec<Todo>,
}

#[derive(Deserialize)]
struct Todo {
    content: String,
    #[serde(rename = "status")]
    _status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

#[async_trait]
impl Tool for TodoWrite {
    fn name(&self) -> &str {
        "TodoWrite"
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name(),
            "description": "Keeps a list of what is to be done. Each call replaces the whole list. Use it for work of three or more steps, and keep one item `in_progress`.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "content": { "type": "string", "description": "What is to be done." },
                                "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                                "activeForm": { "type": "string", "description": "The same while it is being done: `Reading the manual`." },
                            },
                            "required": ["content", "status"],
                        },
                    },
                },
                "required": ["todos"],
            },
        })
    }

    async fn call(&self, input: Value) -> ToolResult {
        let Input { todos } = match input::read::<Input>(self.name(), input) {
            Ok(input) => input,
            Err(error) => return error,
        };
        if todos.len() > MOST_ITEMS {
            return ToolResult::error(format!("a list has at most {MOST_ITEMS} items"));
        }
        if todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return ToolResult::error("an item must say what is to be done");
        }
        ToolResult::text(format!("The list is kept: {} items.", todos.len()))
    }
}
