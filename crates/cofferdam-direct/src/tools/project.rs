//! `Read`, `Grep` and `Glob`: the files of a project, read in a sealed process that sees them as an agent would.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input;
use crate::sealed::{Answer, GlobJob, GrepJob, GrepOutput, Job, ReadJob, SealedTools};
use crate::tool::{Tool, ToolResult};

/// Has a job done, and tells the model what came of it.
async fn run(sealed: &dyn SealedTools, job: Job) -> ToolResult {
    match sealed.run(job, None).await {
        Ok(Answer::Text { text }) => ToolResult::text(text),
        Ok(Answer::Refused { reason }) => ToolResult::error(reason),
        Ok(Answer::Page(_)) => ToolResult::error("the sealed process answered something else"),
        Err(fault) => ToolResult::error(fault.to_string()),
    }
}

/// Reads a file.
#[derive(Clone)]
pub struct Read(pub Arc<dyn SealedTools>);

#[derive(Deserialize)]
struct ReadInput {
    file_path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &str {
        "Read"
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name(),
            "description": "Reads a text file of the project, with line numbers: the first 2000 lines, or those from `offset` on.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "file_path": { "type": "string", "description": "The file, such as `src/main.rs`. The project is at /workspace." },
                    "offset": { "type": "integer", "minimum": 1, "description": "The first line." },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many lines." },
                },
                "required": ["file_path"],
            },
        })
    }

    async fn call(&self, input: Value) -> ToolResult {
        match input::read(self.name(), input) {
            Ok(ReadInput { file_path, offset, limit }) => {
                run(&*self.0, Job::Read(ReadJob { path: file_path, offset, limit })).await
            }
            Err(error) => error,
        }
    }
}

/// Searches files.
#[derive(Clone)]
pub struct Grep(pub Arc<dyn SealedTools>);

#[derive(Deserialize)]
struct GrepInput {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    output_mode: OutputMode,
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    #[serde(rename = "-B", default)]
    before: usize,
    #[serde(rename = "-A", default)]
    after: usize,
    #[serde(rename = "-C")]
    around: Option<usize>,
    head_limit: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &str {
        "Grep"
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name(),
            "description": "Searches the project's files, line by line, without those that git ignores.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "A regular expression, as of ripgrep." },
                    "path": { "type": "string", "description": "A file or a folder; the whole project without it." },
                    "glob": { "type": "string", "description": "Only files whose names fit, such as `*.rs`." },
                    "output_mode": {
                        "type": "string",
                        "enum": ["content", "files_with_matches", "count"],
                        "description": "The lines, the files (the default), or how many lines each file has.",
                    },
                    "-i": { "type": "boolean", "description": "The case of letters does not matter." },
                    "-A": { "type": "integer", "minimum": 0, "description": "Lines to show after each match." },
                    "-B": { "type": "integer", "minimum": 0, "description": "Lines to show before each match." },
                    "-C": { "type": "integer", "minimum": 0, "description": "Both." },
                    "head_limit": { "type": "integer", "minimum": 1, "description": "Lines of output; 250 without it." },
                },
                "required": ["pattern"],
            },
        })
    }

    async fn call(&self, input: Value) -> ToolResult {
        let input: GrepInput = match input::read(self.name(), input) {
            Ok(input) => input,
            Err(error) => return error,
        };
        let job = GrepJob {
            pattern: input.pattern,
            path: input.path,
            glob: input.glob,
            output: match input.output_mode {
                OutputMode::Content => GrepOutput::Content,
                OutputMode::FilesWithMatches => GrepOutput::FilesWithMatches,
                OutputMode::Count => GrepOutput::Count,
            },
            ignore_case: input.ignore_case,
            before: input.around.unwrap_or(input.before),
            after: input.around.unwrap_or(input.after),
            limit: input.head_limit,
        };
        run(&*self.0, Job::Grep(job)).await
    }
}

/// Lists files.
#[derive(Clone)]
pub struct Glob(pub Arc<dyn SealedTools>);

#[derive(Deserialize)]
struct GlobInput {
    pattern: String,
    path: Option<String>,
}

#[async_trait]
impl Tool for Glob {
    fn name(&self) -> &str {
        "Glob"
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name(),
            "description": "Lists the project's files whose paths fit a pattern, without those that git ignores.",
            "input_schema": {
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "Such as `**/*.rs` or `src/*.{ts,tsx}`." },
                    "path": { "type": "string", "description": "The folder that it begins at; the whole project without it." },
                },
                "required": ["pattern"],
            },
        })
    }

    async fn call(&self, input: Value) -> ToolResult {
        match input::read(self.name(), input) {
            Ok(GlobInput { pattern, path }) => run(&*self.0, Job::Glob(GlobJob { pattern, path })).await,
            Err(error) => error,
        }
    }
}
