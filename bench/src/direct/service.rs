//! `cofferdam serve` with a model, until it is dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::bail;
use cofferdam_api::Client;
use cofferdam_scripted_model::ScriptedModel;
use serde_json::{Value, json};

use super::KEY;

pub(super) struct Service {
    child: Child,
    pub(super) client: Client,
}

impl Service {
    pub(super) fn start(
        binary: &Path,
        state: &Path,
        model: &ScriptedModel,
        sessions: usize,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(state)?;
        rustix::fs::chmod(state, rustix::fs::Mode::RWXU)?;
        let settings = json!({ "service": { "direct_capacity": sessions } });
        std::fs::write(state.join("settings.json"), settings.to_string())?;
        let command = || {
            let mut command = Command::new(binary);
            command.env("COFFERDAM_HOME", state).env("HOME", state).stdin(Stdio::null());
            command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", model.base_url());
            command
        };
        let mut serve = command();
        serve.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = serve.spawn()?;
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let status = command().args(["status", "--json"]).output()?;
            let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
            if let (true, Some(listen)) = (status["ready"] == true, status["listen"].as_str()) {
                let key = std::fs::read_to_string(state.join("api-key"))?;
                let client = Client::new(&format!("http://{listen}"), Some(key.trim()))?;
                return Ok(Self { child, client });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill()?;
        bail!("the service does not get ready")
    }

    /// What its processes have in memory, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<u64> {
        let mut processes = vec![self.child.id()];
        let mut bytes = 0;
        while let Some(pid) = processes.pop() {
            let process = PathBuf::from(format!("/proc/{pid}"));
            let status = std::fs::read_to_string(process.join("status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kib = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0");
            bytes += kib.parse::<u64>()? * 1024;
            let children = process.join(format!("task/{pid}/children"));
            let children = std::fs::read_to_string(children)?;
            processes.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        Ok(bytes)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
