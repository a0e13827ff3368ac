//! Whoever may ask the engine sees no secret.

use std::time::Duration;

use cofferdam_e2e::containers::InContainers;
use cofferdam_e2e::processes::wait_until;
use rustix::process::Signal;

use crate::in_every_container_mode;

const START: Duration = Duration::from_secs(30);
const TOKEN: &str = "token-7c1a0f1b";
const KEY: &str = "sk-ant-key-5d3e9a40";
const PROMPT: &str = "prompt-91f2aa";

in_every_container_mode! {
    fn nothing_that_the_engine_shows_holds_a_secret(mode: &'static ContainerMode) {
        let Some(mut stage) = InContainers::new(mode) else { return };
        let _ = stage.owned_repository();
        stage.fixture.set_env("MY_TOKEN", TOKEN);
        stage.fixture.set_env("ANTHROPIC_API_KEY", KEY);
        let marks = stage.marks();
        let script = marks.script(&format!("echo {PROMPT} $MY_TOKEN; sleep 60"));
        let flags = ["--env", "MY_TOKEN", "--model-access", "--network", "sealed", "--mount", &marks.mount()];
        let running = stage.start(&flags, &script);
        wait_until(START, "the agent works", || marks.starts() == 1);

        let names = stage.containers();
        assert_eq!(names.len(), 1, "{names:?}");
        let inspected = stage.by_hand(&["inspect", &names[0]]);
        let pid = stage.by_hand(&["inspect", "--format", "{{.State.Pid}}", &names[0]]);
        let mut shown = vec![inspected, stage.by_hand(&["ps", "--all", "--no-trunc"])];
        shown.extend(stage.volumes().iter().map(|volume| stage.by_hand(&["volume", "inspect", volume])));
        // What starts the container is told on a command line and in an environment that others may read, too.
        for entry in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{}/{entry}", pid.trim())).unwrap_or_default();
            shown.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        assert!(shown[0].contains(&names[0]), "{}", shown[0]);
        for text in &shown {
            for secret in [TOKEN, KEY, PROMPT, "MY_TOKEN", "ANTHROPIC_API_KEY"] {
                assert!(!text.contains(secret), "{secret} is in {text}");
            }
        }
        running.signal(Signal::TERM);
        assert_eq!(running.finish().outcome(), "cancelled");
    }
}
