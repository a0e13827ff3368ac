//! The CLI is installed in the caller's home. Nothing of the home but the installation can be seen inside.

use std::fs;
use std::path::Path;
use std::process::Command;

use cofferdam_e2e::Agents;
use cofferdam_scripted_model::{Answer, Script};

use crate::agents::hunt::{EVERYWHERE, hunt};
use crate::agents::stage::{Cli, Stage, applied, new_secret};

#[test]
fn of_a_home_with_claude_in_it_only_claude_is_inside() {
    let Some(agents) = Agents::find() else { return };
    let files = installed_at_home(&agents, Cli::Claude, "@anthropic-ai/claude-code");
    assert_eq!(files, ["/run/cofferdam/agent/0/claude.exe"]);
}

#[test]
fn of_a_home_with_codex_in_it_only_codex_is_inside() {
    let Some(agents) = Agents::find() else { return };
    let files = installed_at_home(&agents, Cli::Codex, "@openai/codex");
    assert!(files.iter().any(|file| file.ends_with("/bin/codex")), "{files:?}");
}

/// Runs a CLI whose package lies in the caller's home among other things. Gives what of it is inside.
fn installed_at_home(agents: &Agents, cli: Cli, package: &str) -> Vec<String> {
    let decoy = new_secret("decoy");
    let looked = hunt(&[("decoy", &decoy)], EVERYWHERE);
    let script = format!(
        "{{ {looked}}} > hunt.txt 2>&1; find /run/cofferdam/agent -type f | sort > files.txt; cat hunt.txt"
    );
    let answers = [Answer::shell(script), Answer::text("I have looked.")];
    let mut stage = Stage::with_key(agents, &new_secret("sk-e2e"), Script::new(answers));
    let prefix = stage.fixture.home().join(".npm-global");
    install(agents, package, &prefix);
    for place in [".npm-global/lib/node_modules/decoy.txt", ".npm-global/bin/decoy", "decoy.txt", ".profile"]
    {
        fs::write(stage.fixture.home().join(place), &decoy).expect("a new file");
    }
    fs::write(prefix.join("lib/node_modules").join(package).join("../decoy.txt"), &decoy)
        .expect("a new file");
    stage.fixture.set_env("PATH", &format!("{}:/usr/bin:/bin", prefix.join("bin").display()));

    let finished = stage.run(cli, &[]);
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    stage.assert_the_model_had_the_key();
    let changed = applied(&stage.fixture, &finished.diff());
    assert_eq!(changed["hunt.txt"], "decoy CLEAN\n", "{}", finished.diff());
    changed["files.txt"].lines().map(str::to_owned).collect()
}

/// Installs a package as `npm install --global --prefix` does, with links to the files where that is allowed: they
/// are large.
fn install(agents: &Agents, package: &str, prefix: &Path) {
    let name = package.rsplit('/').next().expect("a name");
    let launcher = name.strip_suffix("-code").unwrap_or(name);
    let (from, to) = (agents.prefix().join("lib/node_modules"), prefix.join("lib/node_modules"));
    let scope = to.join(package).parent().expect("a package has a scope").to_owned();
    fs::create_dir_all(&scope).expect("a new folder");
    fs::create_dir(prefix.join("bin")).expect("a new folder");
    let copied = |how: &[&str]| {
        let mut copy = Command::new("cp");
        copy.arg("--archive").args(how).arg(from.join(package)).arg(&scope);
        copy.output().expect("cp can be started").status.success()
    };
    if !copied(&["--link"]) {
        fs::remove_dir_all(to.join(package)).expect("what was copied so far");
        assert!(copied(&[]), "{package} could not be copied");
    }
    let link = fs::read_link(agents.launcher(launcher)).expect("npm makes links");
    std::os::unix::fs::symlink(link, prefix.join("bin").join(launcher)).expect("a new link");
}
