//! The settings from outside: what is printed, written and trusted by the built binary, and the pages made from it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A home and a repository with settings of its own.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temp folder");
        for name in ["repo/.git", "repo/.cofferdam", "home/.cofferdam"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a new folder");
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there").join(name)
    }

    fn global(&self, text: &str) {
        std::fs::write(self.path("home/.cofferdam/settings.json"), text).expect("a new file");
    }

    fn local(&self, text: &str) {
        std::fs::write(self.path("repo/.cofferdam/settings.json"), text).expect("a new file");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
        command.args(arguments).current_dir(self.path("repo")).env_clear().env("HOME", self.path("home"));
        command
    }

    fn says(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        said(&self.command(arguments).output().expect("the binary can be started"))
    }

    fn shown(&self) -> Value {
        let (code, stdout, stderr) = self.says(&["sandbox", "show", "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[test]
fn the_pages_made_from_the_code_are_current() {
    let place = Place::new();
    for (command, page) in [
        ("schema", "settings.schema.json"),
        ("reference", "settings.md"),
        ("access", "reference/access.md"),
        ("config", "reference/config.md"),
        ("specs", "reference/specs.md"),
    ] {
        let (code, printed, stderr) = place.says(&["settings", command]);
        assert_eq!(code, Some(0), "{stderr}");
        let written = std::fs::read_to_string(docs(page)).unwrap_or_default();
        assert!(written == printed, "docs/{page} is not current: type `./dev docs` to write it again");
    }
}

#[test]
fn every_example_in_the_documentation_is_one() {
    let schema = std::fs::read_to_string(docs("settings.schema.json")).expect("it is checked in");
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).expect("JSON")).expect("a schema");
    let mut examples = 0;
    for page in pages(&docs("")).into_iter().chain([docs("../README.md")]) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for block in text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let Ok(Value::Object(example)) = serde_json::from_str::<Value>(block) else { continue };
            if !["sandbox", "agents", "roles", "egress", "prices"]
                .iter()
                .any(|key| example.contains_key(*key))
            {
                continue;
            }
            examples += 1;
            let found = schema.validate(&Value::Object(example)).map_err(|error| error.to_string());
            assert_eq!(found, Ok(()), "{}: {block}", page.display());
            let place = Place::new();
            place.global(block);
            place.shown();
        }
    }
    assert!(examples > 0, "there are examples");
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    own.chain(folders.iter().flat_map(|folder| pages(folder))).collect()
}

#[test]
fn show_says_where_each_value_was_set() {
    let place = Place::new();
    place.global(r#"{"sandbox": {"mode": "apple", "max_attempts": 3}}"#);
    place.local(r#"{"sandbox": {"max_attempts": 2, "mode": "host"}}"#);
    let mut command = place.command(&["sandbox", "show", "--json"]);
    let output = command.env("EXECUTION_ENVIRONMENT", "sandbox").output().expect("the binary can be started");
    let (code, stdout, stderr) = said(&output);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("is not trusted; left out: sandbox.mode\n"), "{stderr}");
    let shown: Value = serde_json::from_str(&stdout).expect("JSON");
    let origin = |key: &str| {
        let values = shown["values"].as_array().expect("a list");
        values.iter().find(|value| value["key"] == key).expect(key)["origin"].clone()
    };
    let variable = "EXECUTION_ENVIRONMENT";
    let shown_as = format!("variable {variable}");
    assert_eq!(
        origin("sandbox.mode"),
        json!({"kind": "environment", "variable": variable, "shown": shown_as})
    );
    assert_eq!(shown["settings"]["sandbox"]["mode"], "apple");
    assert_eq!(origin("sandbox.max_attempts")["kind"], "untrusted");
    assert_eq!(origin("sandbox.timeout_seconds"), json!({"kind": "default", "shown": "default"}));
    assert_eq!(shown["local"]["left_out"], json!([{"key": "sandbox.mode", "value": "host"}]));
    let (_, text, _) = place.says(&["sandbox", "show"]);
    let line = text.lines().find(|line| line.starts_with("sandbox.max_attempts ")).expect("a line");
    assert!(line.contains(" 2 ") && line.ends_with("(not trusted, and stricter)"), "{line}");
}

/// The attack: another user makes the folder, or may write to it, and leaves settings that ask for no sandbox.
#[test]
fn settings_that_somebody_else_could_have_written_are_refused_with_what_to_type() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let place = Place::new();
    place.global(r#"{"sandbox": {"mode": "host"}}"#);
    assert_eq!(
        place.shown()["settings"]["sandbox"]["mode"],
        "host",
        "they count while they are the caller's"
    );
    let state = place.path("home/.cofferdam");
    let refused = |arguments: &[&str], why: &str, hint: &str| {
        let (code, stdout, stderr) = place.says(arguments);
        assert_eq!((code, &*stdout), (Some(3), ""), "{stderr}");
        let said = format!("error: the state folder {} cannot be used: {why}\n", state.display());
        assert!(stderr.contains(&said) && stderr.contains(hint), "{stderr}");
    };
    let commands = [
        &["sandbox", "show"][..],
        &["sandbox", "set", "native"],
        &["trust", "list"],
        &["run", "--dry-run", "--", "true"],
        &["run", "--", "true"],
    ];
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o777)).expect("it is ours");
    for arguments in commands {
        let hint = format!("`chmod 700 '{}'`", state.display());
        refused(arguments, "others can write to it (mode 0777)", &hint);
    }
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).expect("it is ours");
    if chown(&state, Some(12345), Some(12345)).is_err() {
        println!("skipped: only root can give a folder away");
        return;
    }
    for arguments in commands {
        let why = "it belongs to user 12345, and you are user 0";
        refused(
            arguments,
            why,
            "hint: run it as user 12345 and not with sudo, or give root a folder of its own",
        );
    }
}

#[test]
fn set_changes_the_mode_and_nothing_else() {
    let place = Place::new();
    let (code, stdout, stderr) = place.says(&["sandbox", "set", "docker"]);
    assert_eq!((code, &*stdout), (Some(0), ""), "{stderr}");
    assert!(stderr.contains("`cofferdam sandbox doctor --mode docker`"), "{stderr}");
    assert_eq!(place.shown()["settings"]["sandbox"]["mode"], "docker");
    let text = "{\n  \"prices\": {},\n  \"sandbox\": {\"mode\": \"native\",  \"max_attempts\":2}\n}";
    place.global(text);
    let (code, _, stderr) = place.says(&["sandbox", "set", "host"]);
    assert!(code == Some(0) && stderr.contains("WARNING: `host` puts no wall"), "{stderr}");
    let written = std::fs::read_to_string(place.path("home/.cofferdam/settings.json")).expect("a file");
    assert_eq!(written, text.replace("native", "host"));
    for (arguments, code, words) in [
        (&["sandbox", "set", "dokcer"][..], 2, "unknown mode `dokcer`"),
        (&["sandbox", "set"], 2, "required"),
    ] {
        let (exit, _, stderr) = place.says(arguments);
        assert!(exit == Some(code) && stderr.contains(words), "{stderr}");
    }
    place.global("{\"sandbox\": ");
    let (code, _, stderr) = place.says(&["sandbox", "set", "docker"]);
    assert!(code == Some(3) && stderr.contains("line 1, column 12"), "{stderr}");
    assert_eq!(
        std::fs::read_to_string(place.path("home/.cofferdam/settings.json")).expect("a file"),
        "{\"sandbox\": "
    );
}

#[test]
fn trust_shows_what_takes_effect_and_forgets_it_after_an_edit() {
    let place = Place::new();
    let (code, _, stderr) = place.says(&["trust"]);
    assert!(
        code == Some(2) && stderr.contains("there is no .cofferdam/settings.json and no https `origin`"),
        "{stderr}"
    );
    place.local(r#"{"sandbox": {"mode": "docker", "timeout_seconds": 60}}"#);
    let (code, stdout, stderr) = place.says(&["trust"]);
    assert_eq!(code, Some(0), "{stderr}");
    let sha256 = place.shown()["local"]["sha256"].as_str().expect("a hash").to_owned();
    assert!(sha256.len() == 64 && stdout.contains(&sha256), "{stdout}");
    assert!(stdout.contains("  sandbox.mode = \"docker\"\n") && !stdout.contains("timeout"), "{stdout}");
    assert_eq!(place.shown()["settings"]["sandbox"]["mode"], "docker");
    let listed = || place.says(&["trust", "list"]).1;
    assert!(listed().starts_with("trusted "), "{}", listed());
    place.local(r#"{"sandbox": {"mode": "apple"}}"#);
    assert!(listed().starts_with("changed "), "{}", listed());
    assert_eq!(place.shown()["settings"]["sandbox"]["mode"], "native");
    let file = place.path("repo/.cofferdam/settings.json");
    std::fs::remove_file(&file).expect("it was there");
    assert!(listed().starts_with("missing "), "{}", listed());
    let (code, _, stderr) = place.says(&["trust", "revoke", file.to_str().expect("text")]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(listed(), "");
    assert_eq!(place.says(&["trust", "revoke"]).0, Some(2));
}

#[test]
fn settings_of_tinyclaw_are_shown_and_written_on_request_alone_and_over_nothing() {
    let place = Place::new();
    let theirs = json!({
        "channels": {"telegram": {"bot_token": "hunter2hunter2"}},
        "sandbox": {"mode": "docker", "max_attempts": 3, "docker": {"memory": "4g", "network": "restricted"}},
        "agents": {"coder": {"provider": "openai", "working_directory": "/w"}},
    });
    let file = place.path("theirs.json");
    std::fs::write(&file, theirs.to_string()).expect("a new file");
    let file = file.to_str().expect("text");
    let ours = place.path("home/.cofferdam/settings.json");

    let (code, stdout, stderr) = place.says(&["settings", "import", file]);
    assert_eq!(code, Some(0), "{stderr}");
    let printed: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(printed["agents"]["coder"]["provider"], "codex", "{printed}");
    for line in ["left out channels: ", "left out sandbox.docker.network: ", "nothing was written"] {
        assert!(stderr.contains(line), "{line}: {stderr}");
    }
    assert!(!stderr.contains("hunter2") && !stdout.contains("hunter2"), "{stderr}");
    assert!(!ours.exists(), "nothing was asked to be written");

    place.global("{\n  \"sandbox\": {\n    \"max_attempts\": 2\n  }\n}\n");
    let (code, _, stderr) = place.says(&["settings", "import", file, "--write"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("kept sandbox.max_attempts as it is"), "{stderr}");
    let written = std::fs::read_to_string(&ours).expect("it is there");
    assert!(written.contains("\n    \"max_attempts\": 2\n"), "{written}");
    let shown = place.shown();
    assert_eq!(shown["settings"]["sandbox"]["mode"], "docker");
    assert_eq!(shown["settings"]["sandbox"]["docker"]["memory"], "4g");
    let (_, again, _) = place.says(&["settings", "import", file, "--write", "--json"]);
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(again["kept"].as_array().map(Vec::len), Some(4), "{again}");
    assert_eq!(std::fs::read_to_string(&ours).expect("it is there"), written);

    for (name, content) in [("none.json", None), ("list.json", Some("[]"))] {
        let path = place.path(name);
        if let Some(content) = content {
            std::fs::write(&path, content).expect("a new file");
        }
        let (code, _, stderr) = place.says(&["settings", "import", path.to_str().expect("text")]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("settings.json of TinyClaw"), "{stderr}");
    }
}
