//! Reading launch scripts: what package managers and version managers put on PATH. They are never run.

use std::path::{Path, PathBuf};

/// The interpreter that a script's first line asks for, if it is one that CLIs are written for.
pub(super) fn interpreter(text: &str) -> Option<&'static str> {
    let line = text.lines().next()?.strip_prefix("#!")?;
    let mut words = line.split_whitespace().map(base_name);
    words.find_map(|word| match word {
        "node" | "nodejs" => Some("node"),
        "bun" => Some("bun"),
        _ => None,
    })
}

/// The version manager that the script hands over to, such as `exec asdf exec "claude" "$@"`.
pub(super) fn version_manager(text: &str) -> Option<&'static str> {
    const MANAGERS: [&str; 6] = ["asdf", "mise", "nodenv", "rbenv", "pyenv", "volta"];
    handing_over(text).find_map(|words| {
        let (program, action) = (base_name(words.first()?), words.get(1)?);
        let hands_over = ["exec", "x", "run"].contains(&action.as_str());
        MANAGERS.into_iter().find(|manager| *manager == program && hands_over)
    })
}

/// The program that the script hands over to, in the forms that npm, pnpm, Nix and the CLIs' own installers
/// write: every line that hands over names the same existing file. `script` is the path that the script is
/// called by.
pub(super) fn target(text: &str, script: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let basedir = text.lines().any(|line| line.trim_start().starts_with("basedir=$(dirname"));
    let basedir = script.parent().filter(|_| basedir);
    let mut target: Option<PathBuf> = None;
    for words in handing_over(text) {
        let found = program_of(&words, basedir, home)?;
        let real = found.canonicalize().ok()?;
        match &target {
            Some(known) if known.canonicalize().ok()? != real => return None,
            Some(_) => {}
            None => target = Some(found),
        }
    }
    target
}

/// The first word of such a line that is a path and no interpreter. A word that only a shell could read,
/// before it, makes the line unreadable.
fn program_of(words: &[String], basedir: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    const INTERPRETERS: [&str; 6] = ["node", "nodejs", "bun", "env", "sh", "bash"];
    for word in words {
        let word = expand(word, basedir, home)?;
        if word.starts_with('/') && !INTERPRETERS.contains(&base_name(&word)) {
            return Some(PathBuf::from(word));
        }
    }
    None
}

fn expand(word: &str, basedir: Option<&Path>, home: Option<&Path>) -> Option<String> {
    let variables = [("basedir", basedir), ("HOME", home)];
    for (name, value) in variables {
        for form in [format!("${name}"), format!("${{{name}}}")] {
            if let Some(rest) =
                word.strip_prefix(&form).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            {
                let value = value?.to_str()?;
                return (!rest.contains(['$', '`'])).then(|| format!("{value}{rest}"));
            }
        }
    }
    (!word.contains(['$', '`'])).then(|| word.to_owned())
}

/// The words of every line that hands over: `exec` with its words, without `-a NAME`; or, as pnpm writes it
/// for what has no interpreter, a path that is given all of the script's arguments.
fn handing_over(text: &str) -> impl Iterator<Item = Vec<String>> + '_ {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        if let Some(line) = line.strip_prefix("exec ") {
            let mut words = words(line);
            if words.first().is_some_and(|word| word == "-a") {
                words.drain(..words.len().min(2));
            }
            return Some(words);
        }
        let words = words(line);
        let is_path = words.first()?.starts_with(['/', '$']) && words[0].contains('/');
        (is_path && words.last()? == "$@").then_some(words)
    })
}

/// Splits a line as a shell does, with quotes but without expanding anything.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in line.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shims_of_version_managers_are_told_by_what_they_exec() {
        let asdf = "#!/usr/bin/env bash\n# asdf-plugin: nodejs 22\nexec /home/me/.asdf/bin/asdf exec \"claude\" \"$@\"\n";
        assert_eq!(version_manager(asdf), Some("asdf"));
        let nodenv = "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexport NODENV_ROOT=\"/x\"\nexec \"/x/libexec/nodenv\" exec \"$program\" \"$@\"\n";
        assert_eq!(version_manager(nodenv), Some("nodenv"));
        assert_eq!(version_manager("#!/bin/sh\nexec mise x -- claude \"$@\"\n"), Some("mise"));
        assert_eq!(version_manager("#!/bin/sh\nexec /opt/claude/claude exec\n"), None);
    }

    #[test]
    fn a_script_with_two_ends_or_with_an_end_that_only_a_shell_could_tell_has_none() {
        let script = Path::new("/usr/bin/x");
        let target = |text: &str| target(text, script, None);
        assert_eq!(target("#!/bin/sh\nexec /bin/ls \"$@\"\n").as_deref(), Some(Path::new("/bin/ls")));
        assert_eq!(
            target("#!/bin/sh\nexec -a \"$0\" \"/bin/ls\" \"$@\"\n").as_deref(),
            Some(Path::new("/bin/ls"))
        );
        assert_eq!(target("\"/bin/ls\"   \"$@\"\nexit $?\n").as_deref(), Some(Path::new("/bin/ls")));
        assert_eq!(target("/bin/ls -l\n"), None, "a command on the way");
        assert_eq!(target("exec /bin/ls\nexec /bin/cat\n"), None);
        assert_eq!(target("exec \"$(dirname \"$0\")/../x\" \"$@\"\n"), None);
        assert_eq!(target("exec $NODE /bin/ls\n"), None);
        assert_eq!(
            target("exec \"$basedir/ls\"\n"),
            None,
            "a variable that the script does not set as npm does"
        );
        assert_eq!(target("echo \"not installed\" >&2\nexit 1\n"), None);
        assert_eq!(target("exec /nowhere/at/all\n"), None);
    }

    #[test]
    fn the_first_line_names_the_interpreter() {
        assert_eq!(interpreter("#!/usr/bin/env -S node --no-warnings\n"), Some("node"));
        assert_eq!(interpreter("#!/usr/bin/node\n"), Some("node"));
        assert_eq!(interpreter("#!/bin/sh\nexec node x\n"), None);
        assert_eq!(interpreter("echo node\n"), None);
    }
}
