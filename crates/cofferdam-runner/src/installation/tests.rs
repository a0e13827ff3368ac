//! Each way in which a CLI is installed, in a folder that looks like it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::version::version_within;
use super::*;

/// A machine with one user, whose PATH is `bin`.
struct Machine {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("bin")).unwrap();
        Self { _folder: folder, root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A native program of this machine.
    fn program(&self, path: &str) -> PathBuf {
        self.file(path, fs::read("/bin/true").unwrap())
    }

    fn package(&self, folder: &str, name: &str) {
        self.file(&format!("{folder}/package.json"), format!(r#"{{"name":"{name}"}}"#));
    }

    fn link(&self, target: &str, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn find(&self, agent: Agent) -> Result<Installation, InstallationError> {
        find(agent, &Search { path: &[self.at("bin")], home: Some(&self.root), exclude: None })
    }
}

fn arch() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

const TRIPLE: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };

#[test]
fn a_native_program_behind_links_is_bound_alone() {
    let machine = Machine::new();
    let real = machine.program(".local/share/claude/versions/2.1.197");
    machine.link("../.local/share/claude/versions/2.1.197", "bin/claude");
    let found = machine.find(Agent::ClaudeCode).unwrap();
    let expected = Installation {
        agent: Agent::ClaudeCode,
        command: machine.at("bin/claude"),
        program: real.clone(),
        script: None,
        binds: vec![real],
        path_entries: vec![],
    };
    assert_eq!(found, expected);
    let own = machine.program(".opencode/bin/opencode");
    machine.link(own.to_str().unwrap(), "bin/opencode");
    assert_eq!(machine.find(Agent::OpenCode).unwrap().binds, [own]);
    let cargo = machine.program("bin/codex");
    assert_eq!(machine.find(Agent::Codex).unwrap().binds, [cargo]);
}

#[test]
fn codex_is_found_nested_hoisted_and_in_older_layouts() {
    let nested =
        format!("lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-{}/vendor/{TRIPLE}", arch());
    let hoisted = format!("lib/node_modules/@openai/codex-linux-{}/vendor/{TRIPLE}", arch());
    let own = format!("lib/node_modules/@openai/codex/vendor/{TRIPLE}");
    for (vendor, program, path) in [
        (&nested, "bin/codex", "codex-path"),
        (&hoisted, "bin/codex", "codex-path"),
        (&own, "codex/codex", "path"),
    ] {
        let machine = Machine::new();
        machine.package("lib/node_modules/@openai/codex", "@openai/codex");
        machine.file("lib/node_modules/@openai/codex/bin/codex.js", "#!/usr/bin/env node\n");
        machine.link("../lib/node_modules/@openai/codex/bin/codex.js", "bin/codex");
        let program = machine.program(&format!("{vendor}/{program}"));
        let rg = machine.program(&format!("{vendor}/{path}/rg"));
        let found = machine.find(Agent::Codex).unwrap();
        assert_eq!(found.program, program);
        assert_eq!(found.binds, [machine.at(vendor)]);
        assert_eq!(found.path_entries, [rg.parent().unwrap()]);
    }
}

#[test]
fn pnpm_s_launch_script_and_store_are_read() {
    let machine = Machine::new();
    let store = "global/5/.pnpm/@openai+codex@0.166.0/node_modules/@openai";
    machine.package(&format!("{store}/codex"), "@openai/codex");
    machine.file(&format!("{store}/codex/bin/codex.js"), "#!/usr/bin/env node\n");
    let vendor = format!("global/5/.pnpm/platform/vendor/{TRIPLE}");
    let program = machine.program(&format!("{vendor}/bin/codex"));
    let platform = machine.at("global/5/.pnpm/platform");
    machine.link(platform.to_str().unwrap(), &format!("{store}/codex-linux-{}", arch()));
    machine.link(
        "../../.pnpm/@openai+codex@0.166.0/node_modules/@openai/codex",
        "global/5/node_modules/@openai/codex",
    );
    let script = "#!/bin/sh\n\
        basedir=$(dirname \"$(echo \"$0\" | sed -e 's,\\\\,/,g')\")\n\
        if [ -x \"$basedir/node\" ]; then\n  \
          exec \"$basedir/node\"  \"$basedir/../global/5/node_modules/@openai/codex/bin/codex.js\" \"$@\"\n\
        else\n  \
          exec node  \"$basedir/../global/5/node_modules/@openai/codex/bin/codex.js\" \"$@\"\n\
        fi\n";
    machine.file("bin/codex", script);
    let found = machine.find(Agent::Codex).unwrap();
    assert_eq!(found.program, program);
    assert_eq!(found.binds, [machine.at(&vendor)]);
    assert_eq!(found.command, machine.at("bin/codex"));
}

#[test]
fn pnpm_s_launch_script_of_a_program_is_read() {
    let machine = Machine::new();
    let real = machine.program("global/5/node_modules/opencode-ai/bin/opencode.exe");
    let script = "#!/bin/sh\n\
        basedir=$(dirname \"$(echo \"$0\" | sed -e 's,\\\\,/,g')\")\n\
        case `uname` in\n    *CYGWIN*) basedir=`cygpath -w \"$basedir\"`;;\nesac\n\
        \"$basedir/../global/5/node_modules/opencode-ai/bin/opencode.exe\"   \"$@\"\n\
        exit $?\n";
    machine.file("bin/opencode", script);
    assert_eq!(machine.find(Agent::OpenCode).unwrap().binds, [real]);
}

#[test]
fn a_skipped_postinstall_leads_to_the_platform_package() {
    let machine = Machine::new();
    let package = "lib/node_modules/@anthropic-ai/claude-code";
    machine.package(package, "@anthropic-ai/claude-code");
    machine.file(&format!("{package}/bin/claude.exe"), "echo \"not installed\" >&2\nexit 1\n");
    machine.link("../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", "bin/claude");
    let missing = machine.find(Agent::ClaudeCode).unwrap_err();
    assert!(matches!(missing, InstallationError::Incomplete { .. }), "{missing}");
    assert!(missing.remedy().contains("npm install -g @anthropic-ai/claude-code"));
    let real = machine
        .program(&format!("{package}/node_modules/@anthropic-ai/claude-code-linux-{}-musl/claude", arch()));
    assert_eq!(machine.find(Agent::ClaudeCode).unwrap().binds, [real]);
    let better =
        machine.program(&format!("{package}/node_modules/@anthropic-ai/claude-code-linux-{}/claude", arch()));
    assert_eq!(machine.find(Agent::ClaudeCode).unwrap().binds, [better]);
}

#[test]
fn an_older_claude_is_bound_with_its_package_and_node() {
    let machine = Machine::new();
    let package = "lib/node_modules/@anthropic-ai/claude-code";
    machine.package(package, "@anthropic-ai/claude-code");
    let script = machine.file(&format!("{package}/agent.js"), "#!/usr/bin/env -S node --no-warnings\n");
    machine.link("../lib/node_modules/@anthropic-ai/claude-code/agent.js", "bin/claude");
    let missing = machine.find(Agent::ClaudeCode).unwrap_err();
    assert!(matches!(missing, InstallationError::NoInterpreter { interpreter: "node", .. }), "{missing}");
    let node = machine.program("versions/v22/bin/node");
    machine.link("../versions/v22/bin/node", "bin/node");
    let found = machine.find(Agent::ClaudeCode).unwrap();
    assert_eq!((found.program, found.script), (node.clone(), Some(script)));
    assert_eq!(found.binds, [machine.at(package), node]);
}

#[test]
fn shims_of_version_managers_are_refused_with_what_to_type() {
    let machine = Machine::new();
    machine.program("tools/mise");
    machine.link("../tools/mise", "bin/claude");
    machine.program("tools/volta-shim");
    machine.link("../tools/volta-shim", "bin/codex");
    machine.file("bin/opencode", "#!/usr/bin/env bash\nexec asdf exec \"opencode\" \"$@\"\n");
    for (agent, which) in [
        (Agent::ClaudeCode, "mise which claude"),
        (Agent::Codex, "volta which codex"),
        (Agent::OpenCode, "asdf which opencode"),
    ] {
        let error = machine.find(agent).unwrap_err();
        assert!(matches!(error, InstallationError::Shim { .. }), "{error}");
        assert!(error.remedy().contains(which), "{}", error.remedy());
    }
}

#[test]
fn a_repository_supplies_no_program() {
    let machine = Machine::new();
    machine.program("repo/node_modules/.bin/claude");
    let repository = machine.at("repo");
    machine.link("repo/node_modules/.bin", "linked");
    let path = ["repo/node_modules/.bin", "linked", "bin"].map(|folder| machine.at(folder));
    let path: Vec<PathBuf> =
        path.into_iter().chain(["".into(), ".".into(), "repo/node_modules/.bin".into()]).collect();
    let search = Search { path: &path, home: None, exclude: Some(&repository) };
    let none = find(Agent::ClaudeCode, &search).unwrap_err();
    assert!(matches!(none, InstallationError::NotFound { elsewhere: None, .. }), "{none}");
    machine.link("../repo/node_modules/.bin/claude", "bin/claude");
    let inside = find(Agent::ClaudeCode, &search).unwrap_err();
    assert!(matches!(inside, InstallationError::InRepository { .. }), "{inside}");
    let without = Search { exclude: None, ..search };
    assert!(find(Agent::ClaudeCode, &without).is_ok());
}

#[test]
fn what_others_could_change_is_refused() {
    let machine = Machine::new();
    let program = machine.program("opt/claude");
    machine.link("../opt/claude", "bin/claude");
    for path in ["opt/claude", "opt", "bin"] {
        let path = machine.at(path);
        let before = path.metadata().unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = machine.find(Agent::ClaudeCode).unwrap_err();
        assert!(matches!(&error, InstallationError::Untrusted { path: at, .. } if *at == path), "{error}");
        fs::set_permissions(&path, before).unwrap();
    }
    assert_eq!(machine.find(Agent::ClaudeCode).unwrap().program, program);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(machine.at("bin/claude"), Some(12345), None).unwrap();
        let error = machine.find(Agent::ClaudeCode).unwrap_err();
        assert!(error.to_string().contains("belongs to user 12345"), "{error}");
    }
}

#[test]
fn a_file_that_others_could_change_in_a_bound_folder_is_refused() {
    let machine = Machine::new();
    let vendor = format!("x/vendor/{TRIPLE}");
    machine.program(&format!("{vendor}/bin/codex"));
    let rg = machine.program(&format!("{vendor}/codex-path/rg"));
    machine.link(&format!("../{vendor}/bin/codex"), "bin/codex");
    assert_eq!(machine.find(Agent::Codex).unwrap().binds, [machine.at(&vendor)]);
    fs::set_permissions(&rg, fs::Permissions::from_mode(0o666)).unwrap();
    let error = machine.find(Agent::Codex).unwrap_err();
    assert!(matches!(&error, InstallationError::Untrusted { path, .. } if *path == rg), "{error}");
}

#[test]
fn a_program_for_another_machine_or_loader_is_refused() {
    let machine = Machine::new();
    let mut bytes = fs::read("/bin/true").unwrap();
    bytes[18] = 243;
    machine.file("bin/claude", &bytes);
    let error = machine.find(Agent::ClaudeCode).unwrap_err();
    assert!(error.to_string().contains("RISC-V"), "{error}");
    let mut bytes = fs::read("/bin/true").unwrap();
    let at = bytes.windows(5).position(|window| window == b"/lib6" || window == b"/lib/").unwrap();
    bytes[at + 1..at + 4].copy_from_slice(b"nix");
    machine.file("bin/opencode", &bytes);
    let error = machine.find(Agent::OpenCode).unwrap_err();
    assert!(matches!(error, InstallationError::Loader { .. }), "{error}");
}

#[test]
fn a_program_that_is_not_on_path_is_named_and_a_loop_of_links_ends() {
    let machine = Machine::new();
    let place = machine.program(".opencode/bin/opencode");
    let error = machine.find(Agent::OpenCode).unwrap_err();
    assert!(error.remedy().contains(place.to_str().unwrap()), "{}", error.remedy());
    machine.file("bin/codex", format!("#!/bin/sh\nexec {} \"$@\"\n", machine.at("bin/codex").display()));
    assert!(matches!(machine.find(Agent::Codex), Err(InstallationError::Script { .. })));
    machine.link("claude", "bin/claude");
    assert!(matches!(machine.find(Agent::ClaudeCode), Err(InstallationError::NotFound { .. })));
}

/// A CLI that is the shell, with a script.
fn spoken(machine: &Machine, script: &str) -> Installation {
    Installation {
        agent: Agent::Codex,
        command: machine.at("bin/codex"),
        program: Path::new("/bin/sh").canonicalize().unwrap(),
        script: Some(machine.file("codex.sh", script)),
        binds: Vec::new(),
        path_entries: Vec::new(),
    }
}

#[tokio::test]
async fn a_version_is_asked_for_in_an_empty_folder_without_an_environment() {
    let machine = Machine::new();
    let script = "[ \"$1\" = --version ] && [ -z \"$(ls -A)\" ] && [ \"$PWD\" = \"$HOME\" ] && \
                  [ -z \"$CARGO_MANIFEST_DIR\" ] && echo left > behind && echo codex-agent 0.166.0\n";
    let asked = spoken(&machine, script);
    for _ in 0..2 {
        assert_eq!(version(&asked, &machine.root).await.unwrap(), "0.166.0");
    }
    assert!(!machine.at("codex-version").exists());
    let silent = version(&spoken(&machine, "echo no number; exit 3\n"), &machine.root).await.unwrap_err();
    assert!(matches!(silent, VersionError::Unexpected { .. }), "{silent}");
}

#[tokio::test]
async fn whatever_a_version_leaves_running_ends_with_it() {
    let machine = Machine::new();
    // The reader of the fifo sees its end only when the process that the script left behind is gone.
    let fifo = machine.at("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Opened by the script itself, so that the reader has somebody to wait for before the version is said.
    let script = format!("exec 3> {}\nsleep 1000 >&3 3>&- &\nexec 3>&-\necho 1.2.3\n", fifo.display());
    let reader = std::thread::spawn(move || fs::read(fifo).unwrap());
    assert_eq!(version(&spoken(&machine, &script), &machine.root).await.unwrap(), "1.2.3");
    assert_eq!(reader.join().unwrap(), b"");
}

#[tokio::test]
async fn a_version_that_takes_too_long_or_never_stops_talking_is_given_up() {
    let machine = Machine::new();
    let within = Duration::from_millis(200);
    let late = version_within(&spoken(&machine, "sleep 1000\n"), &machine.root, within).await.unwrap_err();
    assert!(matches!(late, VersionError::Deadline { .. }), "{late}");
    let endless = version(&spoken(&machine, "exec yes\n"), &machine.root).await.unwrap_err();
    assert!(matches!(endless, VersionError::Unexpected { .. }), "{endless}");
}

/// The real CLIs, where `COFFERDAM_AGENTS` names the folder with their commands.
#[tokio::test]
async fn the_real_clis_are_found_and_say_their_versions() {
    let Some(folder) = std::env::var_os("COFFERDAM_AGENTS").map(PathBuf::from) else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "COFFERDAM_AGENTS is not set");
        eprintln!("SKIPPED: COFFERDAM_AGENTS names no folder with claude, codex and opencode");
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    for agent in Agent::ALL {
        let found =
            find(agent, &Search { path: std::slice::from_ref(&folder), home: None, exclude: None }).unwrap();
        assert_eq!(found.command, folder.join(profile(agent).program));
        assert!(found.script.is_none(), "{found:?}");
        assert_eq!(found.binds.len(), 1, "{found:?}");
        assert!(found.program.starts_with(&found.binds[0]), "{found:?}");
        assert_eq!(found.path_entries.len(), usize::from(agent == Agent::Codex), "{found:?}");
        let said = version(&found, scratch.path()).await.unwrap();
        assert!(said.starts_with(|first: char| first.is_ascii_digit()), "{said}");
    }
}
