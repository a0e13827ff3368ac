//! A check costs money: its answer is kept for a minute, and for the same question alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cofferdam_e2e::Agents;
use cofferdam_test_marks::once;

use crate::auth::stage::{KEY, Stage};

const CLAUDE: [&str; 2] = ["--agent", "claude_code"];

#[once]
#[test]
fn the_model_is_asked_once_a_minute_unless_the_caller_wants_it_fresh() {
    let Some(agents) = Agents::find() else { return };
    let mut stage = Stage::new().with_agents(&agents).with_key(KEY);
    let first = stage.expect(&CLAUDE, "ok");
    assert_eq!(stage.expect(&CLAUDE, "ok"), first, "with the time of the first");
    assert_eq!(stage.model.calls(), 1);
    let fresh = stage.expect(&["--fresh", "--agent", "claude_code"], "ok");
    assert_ne!(fresh["checkedAt"], first["checkedAt"]);
    assert_eq!(stage.model.calls(), 2);
    stage.expect(&["--environment", "host", "--agent", "claude_code"], "ok");
    assert_eq!(stage.model.calls(), 3, "another environment is another question");
    stage.fixture.set_env("ANTHROPIC_API_KEY", "sk-another-key-0123456789");
    stage.expect(&CLAUDE, "auth_required");
    let file = stage.fixture.state().join("auth-checks.json");
    let kept = fs::read_to_string(&file).expect("answers are kept");
    assert!(!kept.contains(KEY) && !kept.contains("sk-another"), "{kept}");
    assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
}
