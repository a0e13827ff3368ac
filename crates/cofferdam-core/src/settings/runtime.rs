//! Which program runs containers.

use crate::text::checked_text;
use crate::value::ValueError;

checked_text! {
    /// The name under which an engine knows an OCI runtime: `runc`, `runsc`, `kata`.
    OciRuntime: oci_runtime => ValueError;
    /// The program with a command line like `docker`'s: its name, looked for on the PATH, or its absolute path.
    RuntimeCommand: runtime_command => ValueError;
}

impl RuntimeCommand {
    /// Apple's own.
    pub const DEFAULT: &str = "container";
}

impl Default for RuntimeCommand {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

fn oci_runtime(text: &str) -> Result<String, ValueError> {
    let hint = "type a name that `docker info` lists under Runtimes, such as `runsc`";
    ValueError::unless(is_name(text), text, "is not the name of a runtime", hint)
}

fn runtime_command(text: &str) -> Result<String, ValueError> {
    const HINT: &str = "type one program, such as `container`, `podman` or `/usr/local/bin/container`";
    let refuse = |problem| Err(ValueError::new(text, problem, HINT));
    if text.contains(char::is_whitespace) {
        return refuse("has a space in it: it is started as one program and never given to a shell");
    }
    if text.contains(char::is_control) {
        return refuse("has a control character in it");
    }
    match text.contains('/') {
        true if text.starts_with('/') && !text.ends_with('/') => Ok(text.to_owned()),
        // It would be another program in every folder, and one that a repository brings.
        true => refuse("is not an absolute path"),
        false => ValueError::unless(is_name(text), text, "is not the name of a program", HINT),
    }
}

/// Letters, digits, `.`, `_` and `-`, and nothing that a command line reads as an option or a folder.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_command_is_one_program() {
        assert_eq!(RuntimeCommand::DEFAULT.parse(), Ok(RuntimeCommand::default()));
        for text in ["container", "apple-container", "podman", "docker", "/opt/x/bin/nerdctl", "_x.1"] {
            assert_eq!(text.parse::<RuntimeCommand>().expect(text).as_str(), text);
        }
        for (text, reason) in [
            ("", "is not the name of a program"),
            ("podman --root /x", "never given to a shell"),
            ("podman\trun", "never given to a shell"),
            (" podman", "never given to a shell"),
            ("podman\0", "control character"),
            ("./container", "is not an absolute path"),
            ("bin/container", "is not an absolute path"),
            ("/usr/bin/", "is not an absolute path"),
            ("-c", "is not the name of a program"),
            ("..", "is not the name of a program"),
            ("podman;id", "is not the name of a program"),
            ("$(id)", "is not the name of a program"),
        ] {
            let error = text.parse::<RuntimeCommand>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("; type one program"), "{text}: {error}");
        }
    }

    #[test]
    fn an_oci_runtime_is_a_name() {
        for text in ["runc", "runsc", "io.containerd.kata.v2", "my_runtime-1"] {
            assert_eq!(text.parse::<OciRuntime>().expect(text).as_str(), text);
        }
        for text in ["", "/usr/bin/runc", "a b", "-x", "a:b"] {
            let error = text.parse::<OciRuntime>().unwrap_err().to_string();
            assert!(error.contains("type a name that `docker info` lists"), "{error}");
        }
    }
}
