use std::path::Path;
use std::process::Command;

use super::*;

const SECRET: &str = "hush-hush-0123456789-abcdefghijklmnopqrstuvwxyz";

fn git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    let output =
        command.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The patch from one content of a file to another, redacted.
fn redacted(before: &[u8], after: &[u8]) -> (String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, &["init", "--quiet"]);
    std::fs::write(root.join("file"), before).unwrap();
    git(root, &["add", "file"]);
    git(root, &["commit", "--quiet", "--message=first"]);
    std::fs::write(root.join("file"), after).unwrap();
    let patch = git(root, &["diff", "--binary"]);
    std::fs::write(root.join("patch"), patch).unwrap();
    let mut target = Vec::new();
    let redactor = Redactor::default().with([SECRET]);
    let has = redact_patch(File::open(root.join("patch")).unwrap(), &mut target, &redactor).unwrap();
    (String::from_utf8(target).unwrap(), has)
}

/// Bytes that git cannot make smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_binary_file_with_a_secret_is_left_out_and_its_other_side_stays() {
    let (patch, has) = redacted(b"\0old", format!("\0{SECRET}").as_bytes());
    assert!(has && patch.contains("GIT binary patch\n[redacted]\nliteral 4\n"), "{patch}");
}

#[test]
fn a_secret_inserted_into_a_binary_file_is_found_wherever_its_delta_is_cut() {
    let before = noise(20_000);
    for padding in (0..140).step_by(7) {
        let new = [&vec![b'-'; padding][..], SECRET.as_bytes(), &[b'+'; 150]].concat();
        let after = [&before[..10_000], &new, &before[10_000..]].concat();
        let (patch, has) = redacted(&before, &after);
        assert!(has && patch.contains("GIT binary patch\n[redacted]\ndelta "), "{padding}: {patch}");
    }
}

#[test]
fn a_binary_file_without_a_secret_is_kept_byte_for_byte() {
    let (patch, has) = redacted(b"\0old", &noise(5_000));
    assert!(!has && patch.contains("GIT binary patch\nliteral 5000\n"), "{patch}");
}

#[test]
fn a_hunk_that_cannot_be_read_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patch");
    std::fs::write(&path, "GIT binary patch\nliteral 9\nI am not base85\n\n+text\n").unwrap();
    let mut target = Vec::new();
    let redactor = Redactor::default().with([SECRET]);
    assert!(redact_patch(File::open(&path).unwrap(), &mut target, &redactor).unwrap());
    assert_eq!(target, b"GIT binary patch\n[redacted]\n+text\n");
}
