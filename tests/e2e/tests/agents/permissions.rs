//! What each permission mode lets a model do that tries everything, through the real CLIs.

use cofferdam_e2e::{Agents, Finished, Record};
use cofferdam_scripted_model::{Answer, Kind, ToolCall};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use crate::agents::stage::{Cli, Stage};

/// A command that no CLI takes for a harmless one, and whose words are not in the command itself.
const COMMAND: &str = "perl -e 'print 40 + 2, qq(-ran\\n)'; perl -e 'open my $f, q(>), q(ran.txt)'";
const RAN: &str = "42-ran";

const ALL: [Cli; 3] = [Cli::Claude, Cli::Codex, Cli::OpenCode];

/// Calls a tool by its name, whether it is offered or not: a model that was talked over would.
fn call(name: &str, input: Value) -> Answer {
    Answer::tools([ToolCall::Raw { name: name.to_owned(), input }])
}

fn write(cli: Cli) -> Answer {
    match cli {
        Cli::Claude => call("Write", json!({ "file_path": "/workspace/made.txt", "content": "made\n" })),
        Cli::Codex => {
            let patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";
            call("apply_patch", json!(patch))
        }
        Cli::OpenCode => call("write", json!({ "filePath": "/workspace/made.txt", "content": "made\n" })),
    }
}

fn shell(cli: Cli, command: &str) -> Answer {
    match cli {
        Cli::Claude => call("Bash", json!({ "command": command, "description": "Run it" })),
        Cli::Codex => call("exec_command", json!({ "cmd": command })),
        Cli::OpenCode => call("bash", json!({ "command": command, "description": "Run it" })),
    }
}

struct Tried {
    finished: Finished,
    record: Record,
}

impl Tried {
    /// What the tools answered, in order.
    fn results(&self) -> String {
        let results = self.record.data_of("agent.tool_result");
        results.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn has_written(&self) -> bool {
        self.finished.diff().contains("made.txt")
    }

    fn has_run(&self) -> bool {
        let both = (self.results().contains(RAN), self.finished.diff().contains("ran.txt"));
        assert_eq!(both.0, both.1, "{}\n{}", self.results(), self.finished.diff());
        both.0
    }
}

/// Lets a model read a file, write one, and run a command.
fn try_all(stage: &Stage, cli: Cli, flags: &[&str]) -> Tried {
    let finished = stage.run(cli, flags);
    assert_eq!(finished.outcome(), "succeeded", "{cli:?} {flags:?}: {}", finished.stderr);
    let record = Record::of(&stage.fixture, &finished.run_id());
    assert!(record.messages().contains(&"That was all."), "{:?}", record.messages());
    Tried { finished, record }
}

fn stage(agents: &Agents, cli: Cli) -> Stage {
    let answers =
        [Answer::read_file("README.md"), write(cli), shell(cli, COMMAND), Answer::text("That was all.")];
    Stage::new(agents, answers)
}

#[once]
#[test]
fn restricted_reads_and_neither_edits_nor_runs() {
    let Some(agents) = Agents::find() else { return };
    for cli in ALL {
        let tried = try_all(&stage(&agents, cli), cli, &["--permission-mode", "restricted"]);
        assert!(tried.results().contains("hello"), "{cli:?}: {}", tried.results());
        assert_eq!((tried.has_written(), tried.has_run()), (false, false), "{cli:?}: {}", tried.results());
        assert_eq!(tried.finished.diff(), "", "{cli:?}");
    }
}

#[once]
#[test]
fn accept_edits_edits_and_does_not_run() {
    let Some(agents) = Agents::find() else { return };
    for cli in ALL {
        let tried = try_all(&stage(&agents, cli), cli, &["--permission-mode", "acceptEdits"]);
        assert!(tried.results().contains("hello"), "{cli:?}: {}", tried.results());
        assert_eq!((tried.has_written(), tried.has_run()), (true, false), "{cli:?}: {}", tried.results());
    }
}

#[test]
fn full_does_everything_and_so_do_the_clis_own_words_for_it() {
    let Some(agents) = Agents::find() else { return };
    for (cli, mode) in [
        (Cli::Claude, "full"),
        (Cli::Claude, "bypassPermissions"),
        (Cli::Codex, "danger-full-access"),
        (Cli::OpenCode, "full"),
    ] {
        let tried = try_all(&stage(&agents, cli), cli, &["--permission-mode", mode]);
        assert_eq!((tried.has_written(), tried.has_run()), (true, true), "{cli:?}: {}", tried.results());
    }
}

#[once]
#[test]
fn the_clis_own_careful_modes_change_nothing() {
    let Some(agents) = Agents::find() else { return };
    for (cli, mode) in
        [(Cli::Claude, "default"), (Cli::Claude, "dontAsk"), (Cli::Claude, "plan"), (Cli::OpenCode, "plan")]
    {
        let tried = try_all(&stage(&agents, cli), cli, &["--permission-mode", mode]);
        assert_eq!((tried.has_written(), tried.has_run()), (false, false), "{cli:?} {mode}");
    }
}

#[once]
#[test]
fn a_repositorys_settings_cannot_loosen_a_mode_or_name_programs_to_run() {
    let Some(agents) = Agents::find() else { return };
    let hook = json!([{ "hooks": [{ "type": "command", "command": "touch hooked.txt" }] }]);
    let claude = json!({
        "permissions": { "allow": ["Bash", "Write", "Edit"], "defaultMode": "bypassPermissions" },
        "hooks": { "SessionStart": hook, "PreToolUse": hook, "UserPromptSubmit": hook },
    });
    let open = json!({ "bash": "allow", "edit": "allow", "*": "allow" });
    let opencode = json!({
        "permission": open, "default_agent": "loose",
        "agent": { "build": { "permission": open }, "loose": { "mode": "primary", "permission": open } },
    });
    let codex =
        "approval_policy = \"never\"\n[mcp_servers.x]\ncommand = \"touch\"\nargs = [\"hooked.txt\"]\n";
    for cli in ALL {
        let stage = stage(&agents, cli);
        stage.fixture.write(".claude/settings.json", claude.to_string());
        stage.fixture.write("opencode.json", opencode.to_string());
        stage.fixture.write(".codex/config.toml", codex);
        let tried = try_all(&stage, cli, &["--permission-mode", "restricted"]);
        assert_eq!((tried.has_written(), tried.has_run()), (false, false), "{cli:?}: {}", tried.results());
        assert_eq!(tried.finished.diff(), "", "{cli:?}");
    }
}

/// Codex reads no instructions of a repository whose settings it is not to trust.
#[once]
#[test]
fn the_instructions_of_a_repository_are_read_although_its_settings_are_not() {
    let Some(agents) = Agents::find() else { return };
    for cli in [Cli::Claude, Cli::OpenCode] {
        let stage = stage(&agents, cli);
        stage.fixture.write("CLAUDE.md", "Mind the 17 gaps.\n");
        stage.fixture.write("AGENTS.md", "Mind the 17 gaps.\n");
        try_all(&stage, cli, &["--permission-mode", "restricted"]);
        assert!(said_to_the_model(&stage).contains("Mind the 17 gaps."), "{cli:?}");
    }
}

#[once]
#[test]
fn a_list_of_tools_leaves_nothing_else() {
    let Some(agents) = Agents::find() else { return };
    for (cli, tools) in [(Cli::Claude, "Read,Bash(git status)"), (Cli::OpenCode, "read,bash(git status)")] {
        let answers = [
            Answer::read_file("README.md"),
            write(cli),
            shell(cli, COMMAND),
            shell(cli, "git status"),
            Answer::text("That was all."),
        ];
        let stage = Stage::new(&agents, answers);
        let tried = try_all(&stage, cli, &["--allowed-tools", tools]);
        let results = tried.results();
        assert!(results.contains("hello") && results.contains("On branch main"), "{cli:?}: {results}");
        assert_eq!((tried.has_written(), tried.has_run()), (false, false), "{cli:?}: {results}");
    }
}

#[once]
#[test]
fn a_tool_that_is_disallowed_is_not_there_in_any_mode() {
    let Some(agents) = Agents::find() else { return };
    for (cli, tool) in [(Cli::Claude, "Bash"), (Cli::OpenCode, "bash")] {
        let tried = try_all(&stage(&agents, cli), cli, &["--disallowed-tools", tool]);
        assert_eq!((tried.has_written(), tried.has_run()), (true, false), "{cli:?}: {}", tried.results());
    }
}

#[once]
#[test]
fn a_system_prompt_is_added_or_takes_the_place_of_the_clis_own() {
    let Some(agents) = Agents::find() else { return };
    for (cli, own) in
        [(Cli::Claude, "interactive"), (Cli::Codex, "coding agent"), (Cli::OpenCode, "opencode")]
    {
        let added = Stage::new(&agents, [Answer::text("That was all.")]);
        try_all(&added, cli, &["--system-prompt", "Speak like a pirate."]);
        let said = said_to_the_model(&added);
        assert!(said.contains("Speak like a pirate.") && said.contains(own), "{cli:?}: {said}");

        let replaced = Stage::new(&agents, [Answer::text("That was all.")]);
        let flags = ["--replace-system-prompt", "You are a parrot.", "--system-prompt", "Be green."];
        try_all(&replaced, cli, &flags);
        let said = said_to_the_model(&replaced);
        assert!(said.contains("You are a parrot.") && said.contains("Be green."), "{cli:?}: {said}");
        let shorter = said_to_the_model(&added).len() > said.len() + 1000;
        assert!(shorter, "{cli:?} kept its own: {said}");
    }
}

#[once]
#[test]
fn what_an_agent_cannot_do_is_refused_with_what_it_can() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new(&agents, []);
    for (cli, flags, words) in [
        (Cli::Codex, ["--permission-mode", "plan"], "`plan` is not a permission mode of codex"),
        (Cli::OpenCode, ["--permission-mode", "dontAsk"], "`plan`"),
        (Cli::Claude, ["--permission-mode", "yolo"], "`yolo` is not a permission mode"),
        (Cli::Codex, ["--allowed-tools", "Read"], "codex has no list of tools"),
        (Cli::Claude, ["--allowed-tools", "Read Bash"], "`Read Bash` is not a tool"),
    ] {
        let finished = stage.run(cli, &flags);
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        assert!(finished.stderr.contains(words), "`{words}` in {}", finished.stderr);
    }
    assert_eq!(stage.model.requests().len(), 0);
}

/// The first call's instructions and conversation, without its tools.
fn said_to_the_model(stage: &Stage) -> String {
    let requests = stage.model.requests();
    let mut call = requests.into_iter().find(|request| request.kind == Kind::Call).expect("a call");
    call.body["tools"] = Value::Null;
    call.body.to_string()
}
