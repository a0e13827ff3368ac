//! `docker run --rm --network none IMAGE true`, with whatever engine and image this machine has.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::Contestant;

/// Names the image to run; the first local one by default.
const IMAGE: &str = "COFFERDAM_BENCH_IMAGE";

pub(super) struct Docker {
    image: String,
    server: String,
}

impl Docker {
    /// The engine and an image that is there already, or why there is nothing to compare with.
    pub(super) fn find() -> Result<Self, String> {
        let ask = |arguments: &[&str]| -> Result<String, String> {
            let output = Command::new("docker").args(arguments).stdin(Stdio::null()).output();
            let output = output.map_err(|error| format!("docker cannot be started: {error}"))?;
            let said = if output.status.success() { &output.stdout } else { &output.stderr };
            let said = String::from_utf8_lossy(said).trim().to_owned();
            if output.status.success() { Ok(said) } else { Err(format!("no engine answers: {said}")) }
        };
        let server = ask(&["version", "--format", "{{.Server.Version}}"])?;
        let image = match std::env::var(IMAGE) {
            Ok(image) => image,
            Err(_) => {
                let images = ask(&["images", "--format", "{{.Repository}}:{{.Tag}}"])?;
                let first = images.lines().find(|image| !image.contains("<none>")).map(str::to_owned);
                first.ok_or_else(|| format!("the engine has no image; pull one, or set {IMAGE}"))?
            }
        };
        Ok(Self { image, server })
    }

    pub(super) fn describe(&self) -> String {
        format!("docker run --rm --network none {} true (engine {})", self.image, self.server)
    }
}

impl Contestant for Docker {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let mut command = Command::new("docker");
        command.args(["run", "--rm", "--network", "none", &self.image, "true"]);
        command.stdin(Stdio::null());
        let started = Instant::now();
        let ended = command.output().context("docker cannot be started")?;
        let time = started.elapsed();
        ensure!(ended.status.success(), "docker said: {}", String::from_utf8_lossy(&ended.stderr));
        Ok(time)
    }
}
