//! The command line from outside: help, errors and exit codes of the built binary.

use std::path::Path;
use std::process::{Command, Output};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("the test's own folder and binary are there");
        std::fs::create_dir_all(folder.path().join("repo/.git"))
            .expect("the test's own folder and binary are there");
        std::fs::create_dir_all(folder.path().join("plain"))
            .expect("the test's own folder and binary are there");
        Self { folder }
    }

    /// What a command line in `repo` says, with its exit code; the temporary folder's name is cut out.
    fn says(&self, arguments: &[&str]) -> String {
        self.says_in("repo", arguments)
    }

    fn says_in(&self, folder: &str, arguments: &[&str]) -> String {
        let output = cofferdam(&self.folder.path().join(folder), self.folder.path(), arguments);
        let root = self.folder.path().canonicalize().expect("the test's own folder and binary are there");
        let code = output.status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let text = format!("{}{}", text(&output.stdout), text(&output.stderr));
        format!("{}exit {code}", text.replace(&*root.to_string_lossy(), "[T]"))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn cofferdam(folder: &Path, home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cofferdam"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("HOME", home)
        .env("COLUMNS", "100")
        .output()
        .expect("the test's own folder and binary are there")
}

#[test]
fn help_names_every_command() {
    insta::assert_snapshot!(Place::new().says(&["--help"]), @r"
    Run coding agents on your repositories, sealed off from everything else

    Usage: cofferdam <COMMAND>

    Commands:
      run          Run a coding agent, or any program, on a repository in a sandbox and print what it
                   changed as a diff
      ask          Ask a model, with tools that read and none that write: no agent, no sandbox, no
                   workspace
      message      Say something to an agent of yours, which works in its own folder and remembers what
                   was said
      runs         Look at runs, cancel and remove them
      dead-letter  Look at runs that failed for good, and replay them
      projects     Register, list and forget repositories by name
      spec         Have work thought through in phases, each checked by a gate, before anybody does it
      keys         Make, list and revoke keys of the service
      config       See and change what may change while the service runs
      db           Look after the database of the record
      sandbox      Look at what this machine can enforce, and build the image of containers
      init         Set up: find agents, keys, logins and sandboxes, ask a few questions, and write the
                   settings
      agents       List and show the agents that can be named
      auth         Find out whether agents are logged in
      settings     Look at what can be set, and import settings of TinyClaw
      trust        Let a repository's settings take effect and git tokens open its origin, as both are
                   now
      serve        Take tasks over HTTP and run them, until it is told to stop
      work         Run tasks of the queue, beside a `cofferdam serve` or on another machine
      start        Start the service in the background, and wait until it is ready
      stop         Stop the service that runs in the background
      restart      Stop the service, if it runs, and start it in the background. Runs go on in their
                   sandboxes meanwhile
      status       Tell whether the service runs
      ps           Look at the processes of the service, start and stop them
      logs         Print what the processes of the service have said
      demo         Show on a sample repository what a sealed run holds
      completions  Print the completions of your shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    exit 0
    ");
}

#[test]
fn help_of_doctor_says_what_its_exit_code_means() {
    insta::assert_snapshot!(Place::new().says(&["sandbox", "doctor", "-h"]), @r"
    Find out what this machine can enforce, whether a run would start, and what to type if not

    Usage: cofferdam sandbox doctor [OPTIONS]

    Options:
          --mode <native|docker|apple>  Which sandbox to try [default: what the settings say, or native]
          --json                        Print one JSON object
          --server <URL>                Ask a service to do it, such as `http://127.0.0.1:8787`
                                        [default: COFFERDAM_SERVER, or this machine]
      -h, --help                        Print help

    Exit codes:
       0  a run would start
       3  no run would start
    exit 0
    ");
}

#[test]
fn help_of_run_names_every_flag_and_exit_code() {
    insta::assert_snapshot!(Place::new().says(&["run", "-h"]), @r"
    Run a coding agent, or any program, on a repository in a sandbox and print what it changed as a diff

    Usage: cofferdam run [OPTIONS] [PROMPT] [-- <CMD>...]

    Arguments:
      [PROMPT]  What the agent is to do; `-` reads it from stdin
      [CMD]...  A program and its arguments instead of an agent, after `--`; it is not started through a
                shell

    Options:
          --agent <NAME>
              The agent: `claude_code`, `codex`, `opencode`, or one of the settings [default: the one
              that is installed and has a key]
          --role <worker|tester|docser>
              What it does, with the agent and the words that the settings give that role
          --policy <NAME>
              Keep to a policy of the settings
          --model <MODEL>
              The model, as the agent names it [default: the agent's own]
          --system-prompt <TEXT>
              Added to the agent's own system prompt
          --replace-system-prompt <TEXT>
              Stands in place of the agent's own system prompt
          --permission-mode <MODE>
              What the agent lets its model do: `full`, `acceptEdits`, `restricted`, or a mode of its
              own [default: full]
          --allowed-tools <TOOLS>
              The only tools that its model has, such as `Read,Grep,Bash(git log *)` (repeatable)
          --disallowed-tools <TOOLS>
              Tools the model may not use (repeatable)
          --max-turns <NUMBER>
              Turns of the model that the agent may take, where it can count them
          --repo <PATH|URL>
              Repository: a folder or an address [default: the one around the current folder]
          --no-repo
              Start with an empty workspace
          --ref <REF>
              Branch, tag or commit to work on, instead of the files as they are now
          --working-dir <FOLDER>
              Start in this folder of the repository
          --read-only
              Let it read the repository and not change it: for a review or a question
          --mode <native|docker|apple|host>
              `native`, `docker` and `apple` seal the program off; `host` does NOT [default: native]
          --image <IMAGE>
              The container's image [default: cofferdam/worker:latest, or what the settings say]
          --network <sealed|none|open>
              What it can reach [default: sealed for agents, none for programs, open with --mode host]
          --allow <HOST:PORT|SET>
              Let it connect to HOST:PORT, or to a set such as `npm`, `pypi`, `crates`, `github`
              (repeatable)
          --forward <NAME|PORT=HOST:PORT>
              Put a service on the sandbox's own 127.0.0.1: one of `sandbox.forwards`, or any
              (repeatable)
          --push <BRANCH>
              Let it push this branch of the repository's origin
          --commit-branch <BRANCH>
              Commit the changes and push them to this branch of the repository's address, if the run
              succeeds
          --commit-message <TEXT>
              What the commit says [default: who made it, and the run's id]
          --model-access
              Let a program use the model through the broker, as agents do
          --vendor-tools [<TOOLS>]
              Let the model's vendor run these tools on the agent's behalf: `web_search`, `web_fetch`
              (repeatable, or a list with commas)
          --max-cost-usd <AMOUNT>
              What it may spend at the model, in US dollars
          --max-tokens <NUMBER>
              Tokens that it may use, input and output together
          --max-model-calls <NUMBER>
              Calls of the model that it may make
          --timeout <DURATION>
              Longest time of one attempt, such as 90s, 10m, 1h30m [default: 10m]
          --memory <SIZE>
              Memory of all its processes, such as 512m or 2g [default: 2g]
          --cpus <NUMBER>
              Processors, such as 0.5 or 2 [default: 1]
          --pids <NUMBER>
              Processes and threads [default: 256]
          --disk <SIZE>
              What it may write to disk, such as 500m or 10g [default: 10g]
          --max-attempts <NUMBER>
              How often to try before giving up [default: 1]
          --env <NAME>
              Pass on one of your variables, by name (repeatable)
          --mount <PATH[:ro|rw]>
              Make a path of this machine visible at the same path; read-only unless `:rw` (repeatable)
          --unmask <GLOB>
              Show files that are hidden because they look like secrets (repeatable)
          --server <URL>
              Ask a service to do it, such as `http://127.0.0.1:8787` [default: COFFERDAM_SERVER, or
              this machine]
          --dry-run
              Only say what would be run, with which policy, or why it is refused; start nothing
          --apply
              Apply the diff to the local repository if the run succeeds
          --output <FILE>
              Write the diff to this file and not to stdout
          --json
              Print one JSON object instead of the diff
      -h, --help
              Print help

    Exit codes:
       0  succeeded
       1  the run failed
       2  usage error: bad flag, not a repository, bad address
       3  refused: cannot be sealed here, or a bad setting
       4  timed out
       5  cancelled
       6  the workspace could not be prepared
       7  the agent's program could not be started
       8  the diff could not be applied (conflict)
       9  a limit was exceeded: memory, processes, disk, output
      10  the budget was spent: money, tokens or model calls
      11  the model could not be used: key, quota, overload, no answer
      70  internal error
    exit 0
    ");
}

#[test]
fn not_a_repository_is_a_usage_error() {
    insta::assert_snapshot!(Place::new().says_in("plain", &["run", "--", "true"]), @r"
    error: [T]/plain is not in a git repository (there is no .git here or above)
    hint: change to a repository, name one with `--repo PATH`, or type `--no-repo` for an empty workspace
    exit 2
    ");
}

#[test]
fn bad_addresses_are_usage_errors() {
    let place = Place::new();
    insta::assert_snapshot!(place.says(&["run", "--repo", "ext::sh -c id", "--", "true"]), @r"
    error: --repo: repository address `ext::sh -c id` names a remote helper, which could run any program
    hint: use an address such as `https://host/path` or `git@host:path`, or the path of a folder
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--repo", "--upload-pack=id", "--", "true"]), @r"
    error: --repo: repository address `--upload-pack=id` starts with `-`, which git would read as an option
    hint: use an address such as `https://host/path` or `git@host:path`, or the path of a folder
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--repo", "https://me:hunter2@host/a", "--", "true"]), @r"
    error: --repo: the repository address for host `host` holds a password or token
    hint: leave the password out and let git's credential helper or an ssh key supply it
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--repo", "http://host/a", "--", "true"]), @r"
    error: --repo: repository address `http://host/a` has the scheme `http` (use https, ssh or git)
    hint: use an address such as `https://host/path` or `git@host:path`, or the path of a folder
    exit 2
    ");
}

#[test]
fn bad_values_say_what_to_type() {
    let place = Place::new();
    insta::assert_snapshot!(place.says(&["run", "--timeout", "soon", "--", "true"]), @r"
    error: --timeout: `soon` is not a duration
    hint: type seconds or a duration such as `90s`, `10m` or `1h30m`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--memory", "-1g", "--", "true"]), @r"
    error: --memory: `-1g` is not a size
    hint: type a size such as `512m`, `2g` or `2GiB`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--cpus", "many", "--", "true"]), @r"
    error: --cpus: `many` is not a number of processors
    hint: type a number of processors such as `0.5` or `2`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--pids", "0", "--", "true"]), @r"
    error: --pids: out of range (1 to 4194304)
    hint: use a value in that range
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--max-attempts", "0", "--", "true"]), @r"
    error: --max-attempts: out of range (1 to 100)
    hint: use a value in that range
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--vendor-tools", "--", "true"]), @r"
    error: --vendor-tools: no tool is named
    hint: use one or more of `web_search`, `web_fetch`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--vendor-tools", "web_search,mcp", "--", "true"]), @r"
    error: --vendor-tools: `mcp` is not a tool of a vendor
    hint: use one or more of `web_search`, `web_fetch`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--mode", "dcoker", "--", "true"]), @r"
    error: --mode: unknown mode `dcoker` (use `native`, `docker`, `apple` or `host`)
    hint: use `--mode native`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--mode", "host", "--network", "none", "--", "true"]), @r"
    error: --mode host cannot close the network
    hint: use `--mode native`, or leave --network out
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--env", "TOKEN=hunter2", "--", "true"]), @r"
    error: --env: takes the name of a variable, not a value (in `TOKEN=…`)
    hint: type `export TOKEN=…` first, then `--env TOKEN`, which keeps the value out of `ps`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--env", "NOT_SET", "--", "true"]), @r"
    error: --env: no variable NOT_SET is set here
    hint: type `export NOT_SET=…` first
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--mount", "/", "--", "true"]), @r"
    error: --mount: `/` cannot be mounted: this is the whole machine
    hint: name the folder that is needed and nothing around it
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--ref", "-x", "--", "true"]), @r"
    error: --ref: `-x` is not the name of a branch, a tag or a commit
    hint: type a plain name such as `main`, `v1.2` or a commit id
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--no-repo", "--apply", "--", "true"]), @r"
    error: --apply needs a repository on this machine to apply the diff to
    hint: leave --apply out, and keep the diff with `--output FILE`
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--output", "no/such/file", "--", "true"]), @r"
    error: --output: there is no folder [T]/repo/no/such
    hint: name a file in a folder that exists
    exit 2
    ");
}

#[test]
fn a_dry_run_says_what_would_be_run_and_starts_nothing() {
    let place = Place::new();
    insta::assert_snapshot!(
        place.says(&["run", "--dry-run", "--allow", "a.example:443", "--timeout", "90s", "--", "make", "test"]),
        @r"
    agent       none: the program make test
    repository  [T]/repo as it is now
    workspace   writable
    mode        native
    network     sealed
    may reach   a.example:443
    limits      2 GiB memory, 1 processor, 256 processes, 10 GiB disk
    time        1m 30s, 1 attempt
    budget      none
    mounts      none
    variables   none
    cofferdam: dry run: nothing was started
    exit 0
    "
    );
    insta::assert_snapshot!(place.says(&["run", "--dry-run", "--pids", "0", "--", "true"]), @r"
    error: --pids: out of range (1 to 4194304)
    hint: use a value in that range
    exit 2
    ");
    assert!(!place.folder.path().join(".cofferdam").exists(), "the record is not touched");
}

#[test]
fn a_read_only_run_says_so_and_cannot_be_asked_for_changes() {
    let place = Place::new();
    let said = place.says(&["run", "--read-only", "--dry-run", "--", "true"]);
    assert!(said.contains("workspace   read-only\n") && said.ends_with("exit 0"), "{said}");
    insta::assert_snapshot!(place.says(&["run", "--read-only", "--apply", "--", "true"]), @r"
    error: conflicting options: --read-only leaves nothing to apply with --apply
    hint: leave one of them out
    exit 2
    ");
    insta::assert_snapshot!(place.says(&["run", "--read-only", "--mode", "host", "--", "true"]), @r"
    error: conflicting options: --read-only cannot be enforced in mode host (--mode)
    hint: use `--mode native`, or leave --read-only out
    exit 2
    ");
}

#[test]
fn a_missing_command_and_an_unknown_flag_are_usage_errors() {
    let place = Place::new();
    insta::assert_snapshot!(place.says(&["run"]), @r#"
    error: PROMPT: must be given, or CMD instead
    hint: type `cofferdam run "make the tests pass"`, or a program: `cofferdam run -- make test`
    exit 2
    "#);
    insta::assert_snapshot!(place.says(&["run", "--memroy", "1g", "--", "true"]), @r"
    error: unexpected argument '--memroy' found

      tip: a similar argument exists: '--memory'
      tip: to pass '--memroy' as a value, use '-- --memroy'

    Usage: cofferdam run --memory <SIZE> [PROMPT] [-- <CMD>...]

    For more information, try '--help'.
    exit 2
    ");
}

#[test]
fn completions_are_there_for_the_common_shells() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let said = place.says(&["completions", shell]);
        assert!(
            said.contains("cofferdam") && said.contains("unmask") && said.ends_with("exit 0"),
            "{shell}: {said}"
        );
    }
}

#[test]
fn a_home_that_cannot_be_used_is_refused() {
    let place = Place::new();
    std::fs::write(place.folder.path().join(".cofferdam"), "a file").unwrap();
    let said = place.says(&["runs", "list"]);
    assert!(said.starts_with("error: the state folder [T]/.cofferdam cannot be used"), "{said}");
    assert!(said.ends_with("exit 3"), "{said}");
}

/// What the demo's agent tries must be possible in the first place; otherwise the table proves nothing.
#[test]
fn without_a_sandbox_the_demo_agent_gets_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/demo/sample");
    for name in ["slug.sh", "test.sh"] {
        std::fs::copy(sample.join(name), root.join(name)).unwrap();
    }
    std::fs::create_dir(root.join(".ssh")).unwrap();
    std::fs::write(root.join("secret"), "secret").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Command::new("sleep").arg("3600.251").spawn().unwrap();
    let targets = serde_json::json!({
        "ssh": root.join(".ssh"),
        "secret": root.join("secret"),
        "outside": root.join("outside"),
        "system": root.join("system"),
        "listener": listener.local_addr().unwrap(),
        "demo_pid": std::process::id(),
        "child_pid": child.id(),
        "child_sleeps": "3600.251",
    });
    let output = cofferdam_with_path(&root, &["demo-agent", &targets.to_string()]);
    let said = text(&output.stdout);
    let status = child.wait().unwrap();
    assert!(output.status.success(), "{said}");
    assert!(std::fs::read_to_string(root.join("slug.sh")).unwrap().contains("'a-z-'"));
    assert!(root.join("outside").exists() && root.join("system").exists());
    assert!(listener.set_nonblocking(true).is_ok() && listener.accept().is_ok());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{said}");
    for attempt in
        ["list_ssh", "read_secret", "connect_loopback", "see_processes", "signal_demo", "kill_child"]
    {
        let line = said.lines().find(|line| line.contains(&format!("\"{attempt}\""))).unwrap_or_default();
        assert!(line.contains("\"worked\":true"), "{attempt}: {line}");
    }
}

fn cofferdam_with_path(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cofferdam"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary is there")
}
