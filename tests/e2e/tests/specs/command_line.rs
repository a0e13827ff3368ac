//! `cofferdam spec …` and `cofferdam projects …`, with a service that is called and on this machine's own record.

use cofferdam_core::Phase;
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use crate::agents::Cli;
use crate::specs::stage::{Stage, does_all};

#[once]
#[test]
fn a_spec_is_led_from_its_first_word_to_its_document_with_a_service() {
    led(true);
}

#[once]
#[test]
fn a_spec_is_led_from_its_first_word_to_its_document_on_this_machine() {
    led(false);
}

/// What a command said.
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn led(with_server: bool) {
    let Some(stage) = Stage::new(Cli::Codex, does_all()) else { return };
    let url = stage.service().url();
    let call = |args: &[&str]| {
        let server: &[&str] = if with_server { &["--server", &url] } else { &[] };
        let finished = stage.fixture.cofferdam([args, server].concat());
        let stdout = String::from_utf8(finished.stdout).expect("text");
        Said { code: finished.code, stdout, stderr: finished.stderr }
    };
    let ok = |args: &[&str]| {
        let said = call(args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
        said
    };
    let repo = stage.fixture.repository();
    let project = ok(&["projects", "add", "second", repo.to_str().expect("a plain path")]);
    assert!(project.stdout.starts_with("prj_"), "{}", project.stdout);
    assert!(ok(&["projects", "list"]).stdout.contains("second"));

    std::fs::write(stage.fixture.path("wanted.md"), "A dark theme, chosen by the system's setting.\n")
        .expect("a file");
    let wanted = stage.fixture.path("wanted.md");
    let made = ok(&[
        "spec",
        "create",
        "Dark mode",
        "--project",
        "second",
        "--from",
        wanted.to_str().expect("a path"),
    ]);
    let spec = made.stdout.trim().to_owned();
    assert!(made.stderr.contains(&format!("cofferdam spec execute {spec}")), "{}", made.stderr);
    assert!(ok(&["spec", "list"]).stdout.contains("Dark mode"));
    // Nobody has to type the whole of it.
    assert!(ok(&["spec", "show", &spec[20..]]).stdout.contains("draft"));

    let how = ["--agent", "codex", "--model", "gpt-5.5", "--approve-after", "tasks", "--watch"];
    let watched = ok(&[&["spec", "execute", &*spec], &how[..]].concat());
    for phase in &Phase::DEFAULT[..4] {
        assert!(watched.stdout.contains(&format!("{phase}: try 1")), "{}", watched.stdout);
        assert!(watched.stdout.contains(&format!("{phase}: passed (1.00)")), "{}", watched.stdout);
    }
    assert!(watched.stderr.contains(&format!("cofferdam spec approve {spec}")), "{}", watched.stderr);
    let tasks = ok(&["spec", "show", &spec, "--phase", "tasks"]);
    let tasks: Value = serde_json::from_str(&tasks.stdout).expect("JSON");
    assert_eq!(tasks, cofferdam_core::spec_example(Phase::Tasks));

    assert_eq!(call(&["spec", "reject", &spec]).code, Some(2), "a rejection says why");
    ok(&["spec", "approve", &spec]);
    let watched = ok(&["spec", "watch", &spec]);
    assert!(watched.stdout.contains("sync: passed (1.00)"), "{}", watched.stdout);
    let document = ok(&["spec", "export", &spec]).stdout;
    assert!(document.starts_with("# Dark mode\n"), "{document}");

    let output = stage.fixture.path("tasks.json");
    std::fs::write(&output, json!({ "tasks": [] }).to_string()).expect("a file");
    let poor = format!("tasks={}", output.display());
    let written = ok(&["spec", "update", &spec, "--output", &poor]);
    assert!(written.stderr.contains("tasks does not pass its gate"), "{}", written.stderr);
    assert!(!ok(&["spec", "show", &spec]).stdout.contains("completed"));
    let nothing = call(&["spec", "update", &spec]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stderr);
    assert_eq!(call(&["spec", "show", "spec_nobody"]).code, Some(2));
    ok(&["spec", "update", &spec, "--archive"]);
    assert!(!ok(&["spec", "list"]).stdout.contains("Dark mode"));
}
