//! An agent prints and writes every secret that it was given, in every usual encoding. None of it is on the disk
//! afterwards, nor in anything that is shown.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use cofferdam_e2e::{Finished, Fixture};
use cofferdam_test_marks::once;

/// With characters that JSON, addresses, HTML and shells escape.
const SECRET: &str = "S3cr3t-Value+with=odd&chars%41\"0123~?>~?>x'end";

/// What the agent does with its secret. Everything is on a standard system.
const SCRIPT: &str = r#"
s=$MY_SECRET
hex() { od -An -v -tx1 | tr -d '\n'; }
echo "plain $s."
echo "stderr $s" >&2
printf %s "$s" | base64 -w0; echo
printf %s "x$s" | base64 -w0; echo
printf %s "xy$s" | base64
printf %s "$s" | base64 -w20
printf %s "$s" | base64 -w0 | tr '+/' '-_'; echo
printf %s "$s" | base64 -w0 | base64 -w0; echo
printf %s "$s" | base32
printf %s "$s" | hex | tr -d ' '; echo
printf %s "$s" | hex | tr -d ' ' | tr a-f A-F; echo
printf %s "$s" | hex | tr ' ' ':'; echo
printf %s "$s" | od -v -tx1
printf %s "$s" | od -An -v -tu1
printf %s "$s" | hex | sed 's/ /%/g'; echo
printf %s "$s" | hex | tr a-f A-F | sed 's/ /%/g'; echo
printf %s "$s" | sed 's/%/%25/g;s/&/%26/g;s/+/%2B/g;s/"/%22/g;s/=/%3D/g;s/?/%3F/g;s/>/%3E/g'; echo
printf %s "$s" | hex | sed 's/ /\\x/g'; echo
printf %s "$s" | hex | sed 's/ /\\u00/g'; echo
printf '{"key":"%s"}\n' "$(printf %s "$s" | sed 's/"/\\"/g')"
printf %s "$s" | sed 's/&/\&amp;/g;s/"/\&quot;/g;s/>/\&gt;/g'; echo
printf %s "$s" | sed 's/./&\n/g'
printf '%.9s' "$s"; printf '%s\n' "$(printf %s "$s" | cut -c10-)"
printf '\377%s\377\n' "$s"
head -c 1048560 /dev/zero | tr '\0' ' '; printf '%s\n' "$s"
head -c 1048560 /dev/zero | tr '\0' ' '; printf %s "$s" | base64 -w0; echo
echo "$s" > new.txt
printf %s "$s" | base64 -w20 >> README.md
printf %s "$s" | hex | tr -d ' ' > hex.txt
: > "named-$s"
printf '\0%s' "$s" > binary.bin
"#;

/// Every 16 bytes of every encoding, and what each is.
struct Forbidden {
    windows: HashSet<Vec<u8>>,
    beginnings: HashSet<[u8; 2]>,
}

impl Forbidden {
    fn of(secret: &str) -> Self {
        let each = |write: &dyn Fn(u8) -> String| secret.bytes().map(write).collect::<String>();
        // Characters at either end depend on what stands around the secret.
        let inner = |text: String| text.trim_end_matches('=')[4..].trim_end().to_owned();
        let cut = |text: String| text[..text.len() - 2].to_owned();
        let encodings = [
            secret.to_owned(),
            secret.replace('"', "\\\""),
            cut(inner(STANDARD.encode(secret))),
            cut(inner(STANDARD.encode(format!("x{secret}")))),
            cut(inner(STANDARD.encode(format!("xy{secret}")))),
            cut(inner(URL_SAFE.encode(secret))),
            cut(inner(STANDARD.encode(STANDARD.encode(secret)))),
            each(&|byte| format!("{byte:02x}")),
            each(&|byte| format!("{byte:02X}")),
            each(&|byte| format!("{byte:02x}:")),
            each(&|byte| format!(" {byte:02x}")),
            each(&|byte| format!("%{byte:02x}")),
            each(&|byte| format!("%{byte:02X}")),
            each(&|byte| format!("\\x{byte:02x}")),
            each(&|byte| format!("\\u00{byte:02x}")),
            each(&|byte| format!("{byte},")),
        ];
        let windows: HashSet<Vec<u8>> =
            encodings.iter().flat_map(|text| text.as_bytes().windows(16).map(<[u8]>::to_vec)).collect();
        let beginnings = windows.iter().map(|window| [window[0], window[1]]).collect();
        Self { windows, beginnings }
    }

    /// The first piece of a secret in these bytes.
    fn find(&self, bytes: &[u8]) -> Option<String> {
        let is_one = |window: &&[u8]| {
            self.beginnings.contains(&[window[0], window[1]]) && self.windows.contains(*window)
        };
        bytes.windows(16).find(is_one).map(|window| String::from_utf8_lossy(window).into_owned())
    }

    /// The files below a folder that have a piece of a secret in their content or their path.
    fn files(&self, folder: &Path) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if let Some(piece) = self.find(entry.file_name().as_encoded_bytes()) {
                found.push((path.clone(), piece));
            }
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                found.extend(self.files(&path));
            } else if kind.is_file() {
                let piece = self.find(&fs::read(&path).expect("a file"));
                found.extend(piece.map(|piece| (path, piece)));
            }
        }
        found
    }

    fn assert_not_in(&self, what: &str, finished: &Finished) {
        assert_eq!(self.find(&finished.stdout), None, "stdout of {what}");
        assert_eq!(self.find(finished.stderr.as_bytes()), None, "stderr of {what}");
    }
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.set_env("MY_SECRET", SECRET);
    fixture
}

/// The last parts of paths.
fn names(found: &[(PathBuf, String)]) -> Vec<String> {
    found
        .iter()
        .map(|(path, _)| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_secret_in_twenty_encodings_leaves_no_byte() {
    let fixture = fixture();
    let forbidden = Forbidden::of(SECRET);
    let finished = fixture.run(&["--env", "MY_SECRET"], SCRIPT);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!(finished.json()["redacted"], true);
    assert!(finished.diff().contains("GIT binary patch\n[redacted]\n"), "{}", finished.diff());
    assert!(finished.stderr.contains("the diff had secrets in it"), "{}", finished.stderr);
    assert_eq!(forbidden.files(&fixture.state()), []);
    forbidden.assert_not_in("run", &finished);
    let run = finished.run_id();
    for command in [
        &["runs", "events", "--json", &run][..],
        &["runs", "events", &run],
        &["runs", "show", "--json", &run],
        &["runs", "show", &run],
        &["runs", "diff", &run],
    ] {
        forbidden.assert_not_in(&command.join(" "), &fixture.cofferdam(command));
    }
    let printed = fixture.printed(&run);
    assert_eq!(printed[0], "plain [redacted].", "what stands around a secret stays");
}

#[once]
#[test]
fn without_redaction_the_same_secret_is_everywhere() {
    let mut fixture = fixture();
    fixture.set_env("COFFERDAM_WITHOUT", "redaction");
    let finished = fixture.run(&["--env", "MY_SECRET"], SCRIPT);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let found = names(&Forbidden::of(SECRET).files(&fixture.state()));
    for name in ["transcript.log", "diff.patch", "summary.json"] {
        assert!(found.iter().any(|found| found == name), "{name} is not among {found:?}");
    }
    assert!(found.iter().any(|name| name.contains("db")), "the record is not among {found:?}");
}

#[once]
#[test]
fn a_diff_that_was_redacted_is_not_applied() {
    let fixture = fixture();
    let finished = fixture.run(&["--apply", "--env", "MY_SECRET"], "echo \"$MY_SECRET\" > new.txt");
    assert_eq!(finished.code, Some(8), "{}", finished.stderr);
    assert_eq!(finished.json()["applied"], false);
    assert!(finished.stderr.contains("it had secrets in it, which were taken out"), "{}", finished.stderr);
    assert!(!fixture.repository().join("new.txt").exists());
    assert!(finished.diff().contains("+[redacted]"), "{}", finished.diff());
}

#[once]
#[test]
fn a_token_of_the_callers_that_an_agent_comes_across_is_redacted() {
    let mut fixture = Fixture::new();
    fixture.write("leaked.txt", format!("token: {SECRET}\n"));
    fixture.set_env("GITHUB_TOKEN", SECRET);
    let forbidden = Forbidden::of(SECRET);
    for mode in ["native", "host"] {
        let finished = fixture.run(&["--mode", mode], "cat leaked.txt; base64 leaked.txt; exit 3");
        assert_eq!(finished.outcome(), "failed/agent", "{}", finished.stderr);
        assert_eq!(forbidden.files(&fixture.state()), []);
        forbidden.assert_not_in(mode, &finished);
    }
}

#[once]
#[test]
fn a_command_with_a_token_in_it_is_refused_before_it_is_recorded() {
    let mut fixture = Fixture::new();
    fixture.set_env("GITHUB_TOKEN", SECRET);
    let finished = fixture.cofferdam(["run", "--", "echo", SECRET]);
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: let the program read it"), "{}", finished.stderr);
    assert!(!fixture.state().exists() || Forbidden::of(SECRET).files(&fixture.state()).is_empty());
}

#[once]
#[test]
fn credentials_in_an_address_are_redacted_even_if_nobody_knows_them() {
    let fixture = Fixture::new();
    let script = "echo see https://somebody:unknown-word@host/x; echo postgres://a:b@c/d > settings";
    let finished = fixture.run(&["--apply"], script);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(fixture.printed(&finished.run_id()), ["see https://[redacted]@host/x"]);
    let settings = fs::read_to_string(fixture.repository().join("settings")).expect("it was applied");
    assert_eq!(settings, "postgres://a:b@c/d\n", "what an agent writes is its work");
}

#[test]
fn what_a_process_that_died_has_left_is_collected_without_the_secrets_that_it_knew() {
    let fixture = Fixture::new();
    for failpoint in ["runner.start_sent", "runner.transcript", "runner.diff"] {
        let mut command = fixture.command();
        command.env("MY_SECRET", SECRET).env("COFFERDAM_FAILPOINT", failpoint);
        command.args(["run", "--env", "MY_SECRET", "--", "sh", "-c", SCRIPT]);
        assert_eq!(Finished::of(command).code, None, "{failpoint}: it was killed");
        // This command has neither the variable nor another way to know its value.
        let listed = fixture.cofferdam(["runs", "list"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        assert_eq!(Forbidden::of(SECRET).files(&fixture.state()), [], "{failpoint}");
    }
}
