//! What a request asks: the parts of its body that a script can depend on, the same for each API.

use serde::Serialize;
use serde_json::Value;

/// The APIs that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic Messages: `/v1/messages`.
    Messages,
    /// OpenAI Responses: `/v1/responses`.
    Responses,
    /// OpenAI Chat Completions: `/v1/chat/completions`.
    ChatCompletions,
}

impl Api {
    /// The API of a path, whatever its prefix is.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let apis = [
            ("/messages", Self::Messages),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::ChatCompletions),
        ];
        apis.into_iter().find_map(|(end, api)| path.ends_with(end).then_some(api))
    }
}

/// What a request asks.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// A stream of Chat Completions tells its usage only if asked.
    pub(crate) stream_usage: bool,
    pub(crate) tools: Vec<OfferedTool>,
    /// The text of each message of the user that has text.
    pub(crate) user_texts: Vec<String>,
    pub(crate) tool_results: Vec<String>,
    /// All of it, as it was written.
    pub(crate) whole: String,
}

/// A tool that a request offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// It takes a text and not an object.
    pub(crate) free_text: bool,
}

impl Conversation {
    pub(crate) fn of(api: Api, body: &Value) -> Self {
        let mut conversation = Self {
            api,
            model: body["model"].as_str().unwrap_or("scripted").to_owned(),
            stream: body["stream"].as_bool().unwrap_or(false),
            stream_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
            tools: list(&body["tools"]).iter().flat_map(offered_tools).collect(),
            user_texts: Vec::new(),
            tool_results: Vec::new(),
            whole: format!("{}{}", body["messages"], body["input"]),
        };
        match api {
            Api::Messages | Api::ChatCompletions => {
                list(&body["messages"]).iter().for_each(|message| conversation.add_message(message));
            }
            Api::Responses => match &body["input"] {
                Value::String(text) => conversation.user_texts.push(text.clone()),
                input => list(input).iter().for_each(|item| conversation.add_item(item)),
            },
        }
        conversation
    }

    fn add_message(&mut self, message: &Value) {
        match message["role"].as_str() {
            Some("user") => {
                self.add_user_text(&message["content"]);
                let results = list(&message["content"]).iter().filter(|part| part["type"] == "tool_result");
                self.tool_results.extend(results.map(|result| text_of(&result["content"])));
            }
            Some("tool") => self.tool_results.push(text_of(&message["content"])),
            _ => {}
        }
    }

    fn add_item(&mut self, item: &Value) {
        match item["type"].as_str() {
            Some("function_call_output" | "custom_tool_call_output") => {
                self.tool_results.push(text_of(&item["output"]));
            }
            // Codex offers the tools of its newest models as an item of the input.
            Some("additional_tools") => {
                self.tools.extend(list(&item["tools"]).iter().flat_map(offered_tools));
            }
            Some("message") | None if item["role"] == "user" => self.add_user_text(&item["content"]),
            _ => {}
        }
    }

    fn add_user_text(&mut self, content: &Value) {
        let text = text_of(content);
        if !text.is_empty() {
            self.user_texts.push(text);
        }
    }
}

/// The text of a content that is a string or a list of parts.
fn text_of(content: &Value) -> String {
    if let Value::String(text) = content {
        return text.clone();
    }
    let texts: Vec<&str> = list(content).iter().filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

/// A tool, or those of a namespace.
fn offered_tools(tool: &Value) -> Vec<OfferedTool> {
    if let Some(tools) = tool["tools"].as_array() {
        return tools.iter().flat_map(offered_tools).collect();
    }
    let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
    let free_text = tool["type"] == "custom";
    name.map(|name| OfferedTool { name: name.to_owned(), free_text }).into_iter().collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_known_below_any_prefix() {
        assert_eq!(Api::of_path("/model/anthropic/v1/messages"), Some(Api::Messages));
        assert_eq!(Api::of_path("/v1/responses"), Some(Api::Responses));
        assert_eq!(Api::of_path("/x/v1/chat/completions"), Some(Api::ChatCompletions));
        assert_eq!(Api::of_path("/v1/messages/count_tokens"), None);
    }

    #[test]
    fn a_tool_result_is_not_what_the_user_said_last() {
        let body = json!({"messages": [
            {"role": "user", "content": "do it"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "made"}]},
        ]});
        let conversation = Conversation::of(Api::Messages, &body);
        assert_eq!(conversation.user_texts, ["do it"]);
        assert_eq!(conversation.tool_results, ["made"]);
    }

    #[test]
    fn the_items_of_the_responses_api_are_read() {
        let body = json!({"tools": [{"type": "custom", "name": "apply_patch"}], "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do it"}]},
            {"type": "function_call_output", "call_id": "1", "output": "made"},
        ]});
        let conversation = Conversation::of(Api::Responses, &body);
        assert_eq!(conversation.user_texts, ["do it"]);
        assert_eq!(conversation.tool_results, ["made"]);
        assert!(conversation.tools[0].free_text);
    }

    #[test]
    fn tools_are_also_offered_in_the_input() {
        let tools = json!([{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]);
        let body = json!({"input": [{"type": "additional_tools", "role": "developer", "tools": tools}]});
        let conversation = Conversation::of(Api::Responses, &body);
        assert_eq!(conversation.tools, [OfferedTool { name: "exec".to_owned(), free_text: true }]);
    }
}
