//! What is refused before anything starts, with what to type.

use std::fs;

use cofferdam_scripted_model::Script;
use cofferdam_test_marks::once;
use serde_json::json;

use crate::chat::stage::{Place, Stage};

#[test]
fn a_folder_that_no_agent_may_own_is_refused() {
    let Some(mut stage) = Stage::in_place(Place::Native, Script::new([])) else { return };
    let own = stage.add_agent("coder", "codex", Place::Native);
    let (home, state) = (stage.fixture.home(), stage.fixture.state());
    for folder in ["/", "/etc", "/usr", home.to_str().expect("text"), state.to_str().expect("text")] {
        stage.set_folder("coder", folder);
        let finished = stage.say("coder", &[], "hello");
        assert_eq!(finished.code, Some(3), "{folder}: {}", finished.stderr);
        assert!(
            finished.stderr.contains("cannot own") && finished.stderr.contains("hint: "),
            "{}",
            finished.stderr
        );
    }
    let link = stage.fixture.path("link");
    std::os::unix::fs::symlink(&home, &link).expect("a new link");
    stage.set_folder("coder", link.to_str().expect("text"));
    assert_eq!(stage.say("coder", &[], "hello").code, Some(3), "a link to the home");
    stage.set_folder("coder", own.join("nowhere").to_str().expect("text"));
    let finished = stage.say("coder", &[], "hello");
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("mkdir -p"), "{}", finished.stderr);
    assert_eq!(stage.model.calls(), 0);
}

#[once]
#[test]
fn an_agent_that_nobody_knows_is_named_with_those_that_are_known() {
    let Some(mut stage) = Stage::in_place(Place::Native, Script::new([])) else { return };
    let finished = stage.say("coder", &[], "hello");
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("settings.json"), "{}", finished.stderr);
    stage.add_agent("tester", "codex", Place::Native);
    let finished = stage.say("coder", &[], "hello");
    assert!(finished.stderr.contains("type one of: tester"), "{}", finished.stderr);
    assert_eq!(stage.say("tester", &[], " ").code, Some(2), "nothing was said");
}

#[once]
#[test]
fn a_folder_of_roots_is_refused_with_what_to_type() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for place in [Place::Native, Place::Docker] {
        let Some(mut stage) = Stage::in_place(place, Script::new([])) else { continue };
        let folder = stage.add_agent("coder", "codex", place);
        std::os::unix::fs::chown(&folder, Some(0), Some(0)).expect("root may");
        let finished = stage.say("coder", &[], "hello");
        assert_eq!(finished.code, Some(3), "{}", finished.stderr);
        assert!(finished.stderr.contains("chown -R"), "{}", finished.stderr);
    }
}

#[test]
fn a_path_that_the_sandbox_needs_cannot_be_the_same_inside() {
    let Some(mut stage) = Stage::in_place(Place::Native, Script::new([])) else { return };
    stage.add_agent("coder", "codex", Place::Native);
    stage.set("path_mapping_mode", json!("same-path"));
    if rustix::process::geteuid().is_root() && fs::create_dir_all("/usr/local/cofferdam-e2e").is_ok() {
        stage.set_folder("coder", "/usr/local/cofferdam-e2e");
        let finished = stage.say("coder", &[], "hello");
        let _ = fs::remove_dir("/usr/local/cofferdam-e2e");
        assert_eq!(finished.code, Some(3), "{}", finished.stderr);
        assert!(finished.stderr.contains("the sandbox's own"), "{}", finished.stderr);
    }
}
