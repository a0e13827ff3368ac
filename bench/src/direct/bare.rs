//! The peers: the same call by hand, and the vendor's own agent SDK.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cofferdam_scripted_model::ScriptedModel;
use serde_json::json;

use super::KEY;

/// One call of the Messages API, on a connection of its own, read to the end of its stream.
pub(super) fn call(model: &ScriptedModel, prompt: &str) -> anyhow::Result<Duration> {
    let body = json!({
        "model": "claude-sonnet-5", "max_tokens": 16_000, "stream": true,
        "messages": [{ "role": "user", "content": prompt }],
    })
    .to_string();
    let started = Instant::now();
    let mut stream = TcpStream::connect(model.address())?;
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {}\r\nx-api-key: {KEY}\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        model.address(),
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let time = started.elapsed();
    ensure!(answer.contains("message_stop"), "the model answered something else: {answer}");
    Ok(time)
}

/// `claude-agent-sdk`, in the Python that has it.
pub(super) struct Sdk {
    python: PathBuf,
    agents: PathBuf,
}

/// The question as the SDK's own documentation asks one. What it takes to start Python and to import is not counted.
const PROGRAM: &str = r#"
import asyncio, sys, time
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

async def main():
    options = ClaudeAgentOptions(max_turns=1, model="claude-sonnet-5", allowed_tools=[], setting_sources=[])
    started = time.perf_counter()
    async for message in query(prompt=sys.argv[1], options=options):
        if isinstance(message, ResultMessage):
            took, result = time.perf_counter() - started, message.result
    assert result == "4", result
    print(took)

asyncio.run(main())
"#;

impl Sdk {
    /// Where it is installed.
    pub(super) fn find(python: Option<&Path>, agents: Option<&Path>) -> anyhow::Result<Self> {
        let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
        let python = python.map(Path::to_owned).or_else(|| named("COFFERDAM_AGENT_SDK"));
        let agents = agents.map(Path::to_owned).or_else(|| named("COFFERDAM_AGENTS"));
        let how = "type: ./dev bench direct, which installs it, or leave it out with --without-sdk";
        Ok(Self {
            python: python.with_context(|| format!("where is a Python with claude-agent-sdk? {how}"))?,
            agents: agents.with_context(|| format!("where is claude? {how}"))?,
        })
    }

    pub(super) fn ask(&self, model: &ScriptedModel, prompt: &str, folder: &Path) -> anyhow::Result<Duration> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(&self.python);
        command.args(["-c", PROGRAM, prompt]).env_clear().current_dir(folder);
        command.env("PATH", format!("{}:{path}", self.agents.display())).env("HOME", folder.join("home"));
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", model.base_url());
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        let ended = command.stdin(Stdio::null()).output().context("the Python cannot be started")?;
        let (out, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        ensure!(ended.status.success(), "claude-agent-sdk failed: {said} {out}");
        Ok(Duration::from_secs_f64(out.trim().parse()?))
    }
}
