//! Runs that failed for good: each has a letter on record and in its folder, without secrets, and can be replayed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cofferdam_e2e::{Agents, CodingAgent, Finished, Fixture, Marks};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

const SECRET: &str = "value-of-a-variable-0123456789abcdef";

fn file_of(fixture: &Fixture, run: &str) -> PathBuf {
    fixture.state().join("queue/dead-letter").join(format!("{run}.json"))
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("a letter is JSON")
}

/// What is on record, which is also what is in the folder.
fn letters(fixture: &Fixture) -> Vec<Value> {
    let listed = fixture.cofferdam(["dead-letter", "list", "--json"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let listed = listed.json().as_array().expect("a list").clone();
    for letter in &listed {
        let file = read(&file_of(fixture, letter["run"].as_str().expect("an id")));
        for field in ["failedAt", "errorClass", "errorMessage", "attempt", "maxAttempts", "payload"] {
            assert_eq!(file[field], letter[field], "{field}");
            assert_ne!(file[field], Value::Null, "{field}");
        }
    }
    listed
}

/// The letter of a fixture with one run.
fn only_letter(fixture: &Fixture) -> Value {
    let found = letters(fixture);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[once]
#[test]
fn each_way_to_fail_for_good_leaves_a_letter_of_its_class() {
    let fixture = Fixture::new();
    let cases: [(&str, &[&str], &str); 4] = [
        ("agent", &[], "exit 4"),
        ("timeout", &["--timeout", "1s"], "sleep 300"),
        ("budget", &["--disk", "20m"], "exec dd if=/dev/zero of=big bs=1M count=80 status=none"),
        ("config", &["--ref", "no-such-branch"], "true"),
    ];
    for (class, flags, script) in cases {
        let finished = fixture.run(flags, script);
        let newest = letters(&fixture).remove(0);
        assert_eq!(newest["errorClass"], class, "{}", finished.stderr);
        assert_eq!(finished.json()["error_class"], class);
        assert_eq!(newest["run"], finished.run_id());
        assert_eq!((&newest["attempt"], &newest["maxAttempts"]), (&json!(1), &json!(1)));
        assert!(finished.stderr.contains("cofferdam dead-letter replay"), "{}", finished.stderr);
        let shown = fixture.cofferdam(["dead-letter", "show", &finished.run_id()]);
        assert!(String::from_utf8_lossy(&shown.stdout).contains(&format!("class     {class}")));
    }
    assert_eq!(letters(&fixture).len(), 4);
}

#[test]
fn a_broken_seal_and_a_lost_process_leave_letters_too() {
    let mut fixture = Fixture::new();
    let mut lost = fixture.command();
    lost.args(["run", "--", "true"]).env("COFFERDAM_FAILPOINT", "runner.prepared");
    assert_eq!(Finished::of(lost).code, None);
    assert_eq!(only_letter(&fixture)["errorClass"], "transient");
    fixture.set_env("COFFERDAM_WITHOUT", "seccomp");
    let finished = fixture.run(&["--max-attempts", "3"], "true");
    assert_eq!((finished.outcome().as_str(), &finished.json()["attempts"]), ("failed/seal", &json!(1)));
    assert_eq!(letters(&fixture)[0]["errorClass"], "seal");
}

#[once]
#[test]
fn success_and_cancel_leave_none() {
    let fixture = Fixture::new();
    assert_eq!(fixture.run(&[], "true").code, Some(0));
    let mut cancelled = fixture.start(&[], "sleep 300");
    cancelled.wait_for("running");
    cancelled.signal(rustix::process::Signal::INT);
    assert_eq!(cancelled.finish().code, Some(5));
    assert_eq!(letters(&fixture), Vec::<Value>::new());
    assert_eq!(fs::read_dir(fixture.state().join("queue/dead-letter")).expect("a folder").count(), 0);
}

/// Where there is no wall, an agent can kill its worker.
#[once]
#[test]
fn a_worker_that_crashes_twice_in_a_row_is_the_agents_doing() {
    for (attempts, class) in [("1", "transient"), ("2", "agent")] {
        let fixture = Fixture::new();
        let finished =
            fixture.run(&["--mode", "host", "--max-attempts", attempts], "kill -9 $PPID; sleep 300");
        assert_eq!(finished.outcome(), "failed/worker_crashed", "{}", finished.stderr);
        assert_eq!(finished.json()["attempts"].to_string(), attempts);
        assert_eq!(only_letter(&fixture)["errorClass"], class);
    }
}

#[test]
fn a_letter_is_closed_to_others() {
    let fixture = Fixture::new();
    let run = fixture.run(&[], "exit 1").run_id();
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let file = file_of(&fixture, &run);
    let folder = file.parent().expect("a file is in a folder");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(folder), 0o700);
    assert_eq!(mode(folder.parent().expect("a folder is in a folder")), 0o700);
}

#[once]
#[test]
fn a_replay_is_a_new_run_that_names_the_old_one_and_the_letter_says_what_became_of_it() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let go = marks.folder().join("go");
    let script = format!("test -e {} || exit 3; echo made > new.txt", go.display());
    let old = fixture.run(&["--mount", &marks.mount()], &script).run_id();
    fs::write(&go, "").expect("a new file");
    // Enough of its end is enough.
    let replayed = fixture.cofferdam(["dead-letter", "replay", "--json", "--max-attempts", "2", &old[22..]]);
    assert_eq!(replayed.outcome(), "succeeded", "{}", replayed.stderr);
    assert!(replayed.diff().contains("+made"), "{}", replayed.diff());
    let new = replayed.run_id();
    assert_ne!(new, old);
    assert!(replayed.stderr.contains(&format!("replaying {old} as {new}")), "{}", replayed.stderr);
    let shown = fixture.cofferdam(["runs", "show", "--json", &new]).json();
    assert_eq!((&shown["replay_of"], &shown["request"]["retry"]["max_attempts"]), (&json!(old), &json!(2)));
    let shown = fixture.cofferdam(["runs", "show", &new]).stdout;
    assert!(String::from_utf8_lossy(&shown).contains(&format!("replay of  {old}")));
    assert_eq!(only_letter(&fixture)["replay"], json!({ "run": new, "state": "succeeded" }));

    assert_eq!(fixture.cofferdam(["dead-letter", "rm", &old]).code, Some(0));
    assert_eq!(letters(&fixture), Vec::<Value>::new());
    assert!(!file_of(&fixture, &old).exists());
    assert_eq!(fixture.cofferdam(["runs", "show", "--json", &old]).json()["dead_letter"], false);
    let gone = fixture.cofferdam(["dead-letter", "replay", &old]);
    assert_eq!(gone.code, Some(2), "{}", gone.stderr);
    assert!(gone.stderr.contains("there are no dead letters"), "{}", gone.stderr);
}

#[once]
#[test]
fn removing_the_run_removes_its_letter() {
    let fixture = Fixture::new();
    let run = fixture.run(&[], "exit 1").run_id();
    assert_eq!(fixture.cofferdam(["runs", "rm", &run]).code, Some(0));
    assert_eq!(letters(&fixture), Vec::<Value>::new());
    assert!(!file_of(&fixture, &run).exists());
}

#[once]
#[test]
fn an_agent_whose_quota_is_used_up_is_kept_until_it_makes_sense_again() {
    let Some(agents) = Agents::find() else { return };
    let fixture = Fixture::new();
    let answer = Answer::error(429).with_header("retry-after", "3600");
    let model = ScriptedModel::start(Script::default().ending_with(answer));
    let failed =
        Finished::of(CodingAgent::ClaudeCode.run(&fixture, &agents, &model.base_url(), &[], "make a file"));
    assert_eq!(failed.outcome(), "failed/quota", "{}", failed.stderr);
    assert_eq!(only_letter(&fixture)["errorClass"], "quota");
}

#[once]
#[test]
fn an_agent_whose_model_was_overloaded_succeeds_when_it_is_replayed() {
    let Some(agents) = Agents::find() else { return };
    let fixture = Fixture::new();
    let broken = ScriptedModel::start(Script::default().ending_with(Answer::error(529)));
    let run = CodingAgent::ClaudeCode.run(&fixture, &agents, &broken.base_url(), &[], "make a file");
    let failed = Finished::of(run);
    assert_eq!(failed.outcome(), "failed/overloaded", "{}", failed.stderr);
    assert_eq!(only_letter(&fixture)["errorClass"], "overloaded");
    let model = ScriptedModel::start(Script::new([Answer::write_file("new.txt", "made\n")]));
    let mut replay = CodingAgent::ClaudeCode.run(&fixture, &agents, &model.base_url(), &[], "");
    // The same environment, and another command.
    let envs: Vec<_> =
        replay.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    replay = fixture.command();
    for (name, value) in envs {
        match value {
            Some(value) => replay.env(name, value),
            None => replay.env_remove(name),
        };
    }
    replay.args(["dead-letter", "replay", "--json", &failed.run_id()]);
    let replayed = Finished::of(replay);
    assert_eq!(replayed.outcome(), "succeeded", "{}", replayed.stderr);
    assert!(replayed.diff().contains("+made"), "{}", replayed.diff());
}

/// Fails until there is a file, and then only if it was told the very values.
fn secretive(marks: &Marks) -> String {
    let go = marks.folder().join("go");
    format!(
        "test -e {} || exit 3; test \"$MY_VALUE\" = {SECRET} || exit 4; echo https://me:hidden-word@host/x > new.txt",
        go.display()
    )
}

fn fail_secretively(fixture: &Fixture, marks: &Marks, failpoint: Option<&str>) -> Finished {
    let mut command = fixture.command();
    command.env("MY_VALUE", SECRET).args(["run", "--json", "--env", "MY_VALUE", "--mount", &marks.mount()]);
    command.args(["--", "sh", "-c", &secretive(marks)]);
    command.envs(failpoint.map(|name| ("COFFERDAM_FAILPOINT", name)));
    Finished::of(command)
}

fn assert_no_secret(fixture: &Fixture) {
    for entry in fs::read_dir(fixture.state().join("queue/dead-letter")).expect("a folder").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a file");
        assert!(!text.contains(SECRET) && !text.contains("hidden-word"), "{text}");
    }
    for command in [&["dead-letter", "list", "--json"][..], &["dead-letter", "list"]] {
        let printed = fixture.cofferdam(command);
        let text = String::from_utf8_lossy(&printed.stdout).into_owned() + &printed.stderr;
        assert!(!text.contains(SECRET) && !text.contains("hidden-word"), "{text}");
    }
}

#[once]
#[test]
fn a_secret_is_not_in_the_letter_and_the_replay_has_what_it_needs() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let failed = fail_secretively(&fixture, &marks, None);
    assert_eq!(failed.outcome(), "failed/agent", "{}", failed.stderr);
    assert_no_secret(&fixture);
    let payload = only_letter(&fixture)["payload"].to_string();
    assert!(payload.contains("test -e") && payload.contains("[redacted]"), "{payload}");
    fs::write(marks.folder().join("go"), "").expect("a new file");
    let unset = fixture.cofferdam(["dead-letter", "replay", &failed.run_id()]);
    assert_eq!(unset.code, Some(2), "{}", unset.stderr);
    assert!(unset.stderr.contains("export MY_VALUE="), "{}", unset.stderr);
    assert_eq!(letters(&fixture).len(), 1, "the letter is kept, and nothing was started");
    let mut replay = fixture.command();
    replay.env("MY_VALUE", SECRET).args(["dead-letter", "replay", "--apply", "--json", &failed.run_id()]);
    let replayed = Finished::of(replay);
    assert_eq!(replayed.outcome(), "succeeded", "{}", replayed.stderr);
    let made = fs::read_to_string(fixture.repository().join("new.txt")).expect("it was applied");
    assert_eq!(made, "https://me:hidden-word@host/x\n");
    assert_no_secret(&fixture);
}

#[test]
fn a_letter_whose_writer_was_killed_is_written_by_the_next_command_without_its_secrets() {
    for failpoint in ["store.finish", "runner.dead_letter"] {
        let fixture = Fixture::new();
        let marks = Marks::new(&fixture);
        assert_eq!(fail_secretively(&fixture, &marks, Some(failpoint)).code, None, "{failpoint}");
        let written = fs::read_dir(fixture.state().join("queue/dead-letter")).expect("a folder").count();
        assert_eq!(written, usize::from(failpoint == "runner.dead_letter"), "{failpoint}");
        // This command has neither the variable nor another way to know its value.
        let letter = only_letter(&fixture);
        assert_eq!(letter["errorClass"], "agent", "{failpoint}");
        assert!(letter["payload"].to_string().contains("test -e"), "{letter}");
        assert_no_secret(&fixture);
    }
}

#[once]
#[test]
fn what_nobody_can_redact_any_more_is_left_out() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    assert_eq!(fail_secretively(&fixture, &marks, Some("store.enqueue")).code, None);
    let letter = only_letter(&fixture);
    assert_eq!(letter["errorClass"], "transient");
    assert_eq!(letter["payload"]["agent"], json!({ "provider": "command", "redacted": "[redacted]" }));
    assert_no_secret(&fixture);
    fs::write(marks.folder().join("go"), "").expect("a new file");
    let mut replay = fixture.command();
    replay
        .env("MY_VALUE", SECRET)
        .args(["dead-letter", "replay", "--json"])
        .arg(letter["run"].as_str().expect("an id"));
    let replayed = Finished::of(replay);
    assert_eq!(replayed.outcome(), "succeeded", "{}", replayed.stderr);
}

#[once]
#[test]
fn a_replay_whose_repository_is_gone_says_so_and_keeps_the_letter() {
    let fixture = Fixture::new();
    let run = fixture.run(&[], "exit 1").run_id();
    fs::rename(fixture.repository(), fixture.path("moved")).expect("it can be moved");
    let refused = fixture.cofferdam(["dead-letter", "replay", &run]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("is not at") && refused.stderr.contains("hint: "), "{}", refused.stderr);
    assert_eq!(only_letter(&fixture)["replay"], Value::Null);
}

#[once]
#[test]
fn what_a_person_puts_into_the_folder_changes_nothing_and_is_named() {
    let fixture = Fixture::new();
    let run = fixture.run(&[], "exit 1").run_id();
    let own = file_of(&fixture, &run);
    fs::write(&own, "{}").expect("a file of ours");
    let strange = own.with_file_name("notes \x1b[2J.json");
    fs::write(&strange, "{}").expect("a new file");
    let listed = fixture.cofferdam(["dead-letter", "list", "--json"]);
    assert_eq!(listed.json()[0]["errorClass"], "agent");
    assert_eq!(listed.stderr.lines().count(), 1, "{}", listed.stderr);
    assert!(listed.stderr.contains("ignored") && listed.stderr.contains("notes"), "{}", listed.stderr);
    assert!(!listed.stderr.contains('\x1b'));
    assert!(strange.exists());
    fs::remove_file(&strange).expect("it is there");
    fs::remove_file(&own).expect("it is there");
    assert_eq!(only_letter(&fixture)["run"], run, "it is written again");
}
