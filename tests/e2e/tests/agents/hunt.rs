//! Looking for secrets: from inside, with a script that never has one in one piece, and on the disk.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use cofferdam_e2e::Fixture;

use crate::agents::stage::new_secret;

/// Every process, and every file but those of the system.
pub(crate) const EVERYWHERE: &str = r#"$(
    ls -d /proc/[0-9]*/environ /proc/[0-9]*/cmdline /dev/shm 2>/dev/null
    ls -d /* | grep -vE '^/(usr|opt|bin|sbin|lib[0-9a-z]*|proc|sys|dev)$'
)"#;

/// A shell script that prints, for each secret, `NAME CLEAN`, or `NAME FOUND` and where. `places` are words of
/// the shell. The secrets are in the script in halves, so that neither the script, nor a command line, nor what
/// an agent notes down of it, is itself a find.
pub(crate) fn hunt(secrets: &[(&str, &str)], places: &str) -> String {
    let mut script = format!(
        "places={places}\n\
         hunt() {{\n\
         name=$1; shift\n\
         found=$(printf '%s%s\\n' \"$@\" | grep -rlaFs -D skip -f - $places | head -n 5 | tr '\\n' ' ')\n\
         if [ -n \"$found\" ]; then echo \"$name FOUND $found\"; else echo \"$name CLEAN\"; fi\n\
         }}\n"
    );
    for (name, secret) in secrets {
        let halves = encodings(secret).into_iter().map(|form| {
            let (one, other) = form.split_at(form.len() / 2);
            format!(" '{one}' '{other}'")
        });
        script.push_str(&format!("hunt {name}{}\n", halves.collect::<String>()));
    }
    script
}

/// A secret in plain, in hex, and in base64 wherever it begins in what was encoded.
pub(crate) fn encodings(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![secret.to_owned(), hex.to_uppercase(), hex];
    for before in ["", "x", "xy"] {
        let whole = format!("{before}{secret}");
        // The characters at either end depend on what stands around the secret.
        let inner = |text: String| text[4..text.len() - 4].to_owned();
        forms.extend([inner(STANDARD.encode(&whole)), inner(URL_SAFE.encode(&whole))]);
    }
    forms
}

/// The files below a folder that have one of these in their content.
pub(crate) fn files_with(forms: &[String], folder: &Path) -> Vec<PathBuf> {
    let mut grep = Command::new("grep");
    grep.args(["-rlaF", "-D", "skip", "-f", "-"]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut grep = grep.spawn().expect("grep is installed");
    let mut stdin = grep.stdin.take().expect("stdin was piped");
    stdin.write_all(forms.join("\n").as_bytes()).expect("grep reads");
    drop(stdin);
    let output = grep.wait_with_output().expect("grep ends");
    assert!(matches!(output.status.code(), Some(0 | 1)), "grep could not read everything: {output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

/// Where the CLIs keep what their users logged in with, in the caller's home.
const LOGINS: [(&str, &str); 3] = [
    (".claude/.credentials.json", r#"{"claudeAiOauth":{"accessToken":"SECRET","expiresAt":9999999999999}}"#),
    (".codex/auth.json", r#"{"OPENAI_API_KEY":"SECRET"}"#),
    (".local/share/opencode/auth.json", r#"{"anthropic":{"type":"api","key":"SECRET"}}"#),
];

/// Logs the caller in with all three CLIs, with this secret.
pub(crate) fn plant_logins(fixture: &Fixture, secret: &str) {
    for (name, content) in LOGINS {
        let path = fixture.home().join(name);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
        std::fs::write(path, content.replace("SECRET", secret)).expect("a new file");
    }
}

/// The files of [`plant_logins`].
pub(crate) fn planted_logins(fixture: &Fixture) -> Vec<PathBuf> {
    LOGINS.iter().map(|(name, _)| fixture.home().join(name)).collect()
}

#[test]
fn the_hunt_finds_a_secret_in_the_environment_in_a_file_and_in_base64() {
    let mut fixture = Fixture::new();
    let (in_env, in_file, encoded) = (new_secret("env"), new_secret("file"), new_secret("encoded"));
    let nowhere = new_secret("nowhere");
    fixture.write("notes.txt", &in_file);
    fixture.write("more.txt", STANDARD.encode(format!("x {encoded} y")));
    fixture.set_env("HUNTED", &in_env);
    let secrets = [("env", &*in_env), ("file", &in_file), ("encoded", &encoded), ("none", &nowhere)];
    let finished = fixture.run(&["--env", "HUNTED"], &hunt(&secrets, EVERYWHERE));
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let printed = fixture.printed(&finished.run_id());
    assert!(printed[0].starts_with("env FOUND /proc/"), "{printed:?}");
    assert_eq!(
        printed[1..],
        ["file FOUND /workspace/notes.txt ", "encoded FOUND /workspace/more.txt ", "none CLEAN"]
    );
}

#[test]
fn without_a_wall_the_hunt_finds_the_logins() {
    let fixture = Fixture::new();
    let login = new_secret("login");
    plant_logins(&fixture, &login);
    // In a file: a command with halves of a secret in it is refused.
    fixture.write("hunt.sh", hunt(&[("login", &login)], &format!("'{}'", fixture.home().display())));
    let finished = fixture.run(&["--mode", "host"], "sh hunt.sh");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let printed = fixture.printed(&finished.run_id()).concat();
    for file in planted_logins(&fixture) {
        assert!(printed.contains(file.to_str().expect("a plain path")), "{printed}");
    }
}
