use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, Mode, RenameFlags};
use tempfile::TempDir;

use super::*;

/// A folder with everything that a tag could name, beside a secret.
struct Place {
    folder: TempDir,
    mask: Mask,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), mask: Mask::default() };
        let root = place.root();
        for folder in ["out/deep", ".git", "secrets.key.d", "out.pem"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let files = [
            "result.png",
            "out/a b.txt",
            "out/deep/x.csv",
            "grün/übersicht 😀.pdf",
            "a[1].png",
            "b[1.png",
            ".env",
            ".env.example",
            ".git/config",
            "server.PEM",
            "out.pem/inner.txt",
            "quote'd.txt",
            "two  spaces",
            "-dash",
        ];
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("inside {file}")).unwrap();
        }
        fs::write(place.folder.path().join("secret"), "outside").unwrap();
        symlink("../secret", root.join("link")).unwrap();
        symlink("result.png", root.join("inner-link")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("/proc/self/root/etc/passwd", root.join("magic")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        drop(UnixListener::bind(root.join("socket")).unwrap());
        fs::File::create(root.join("huge")).unwrap().set_len(MOST_FILE_BYTES + 1).unwrap();
        fs::write(root.join("linked"), "inside linked").unwrap();
        fs::hard_link(root.join("linked"), root.join("linked-too")).unwrap();
        fs::hard_link(root.join(".env"), root.join("env-by-another-name")).unwrap();
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work")
    }

    fn into(&self) -> PathBuf {
        self.folder.path().join("kept")
    }

    fn attach(&self, reply: &str) -> Reply {
        let root = self.root();
        let mapped = MappedRoot { host: &root, inside: Path::new("/workspace"), mask: &self.mask };
        attach(reply, &mapped, &self.into()).unwrap()
    }
}

enum Expected {
    /// Attached, from this file of the folder.
    File(&'static str),
    /// Stripped, for this reason.
    Refused(&'static str),
    /// Not a tag: the text stays.
    Text,
}
use Expected::{File, Refused, Text};

#[test]
fn every_tag_is_attached_refused_or_text() {
    let place = Place::new();
    let host_path = format!("[send_file: {}/result.png]", place.root().display());
    let long = format!("[send_file: {}]", "x".repeat(5000));
    let longer_name = format!("[send_file: {}]", "x".repeat(300));
    let table: &[(&str, Expected)] = &[
        ("[send_file: /workspace/result.png]", File("result.png")),
        ("[send_file:/workspace/result.png]", File("result.png")),
        ("[send_file:   result.png   ]", File("result.png")),
        ("[SEND_FILE: result.png]", File("result.png")),
        ("[Send_File: ./result.png]", File("result.png")),
        ("[send_file: /workspace//out/./deep/x.csv]", File("out/deep/x.csv")),
        ("[send_file: out/a b.txt]", File("out/a b.txt")),
        ("[send_file: two  spaces]", File("two  spaces")),
        ("[send_file: grün/übersicht 😀.pdf]", File("grün/übersicht 😀.pdf")),
        ("[send_file: a[1].png]", File("a[1].png")),
        ("[send_file: b[1.png]", File("b[1.png")),
        ("[send_file: quote'd.txt]", File("quote'd.txt")),
        ("[send_file: -dash]", File("-dash")),
        ("[send_file: .env.example]", File(".env.example")),
        ("[send_file: linked]", File("linked")),
        ("Here it is: [send_file: result.png], have fun", File("result.png")),
        ("[[send_file: result.png]]", File("result.png")),
        ("a ` b [send_file: result.png]", File("result.png")),
        ("[send_file: ]", Refused("no name")),
        ("[send_file:]", Refused("no name")),
        ("[send_file: /etc/passwd]", Refused("not in the agent's folder")),
        ("[send_file: /workspace2/result.png]", Refused("not in the agent's folder")),
        ("[send_file: /]", Refused("not in the agent's folder")),
        (host_path.as_str(), Refused("not in the agent's folder")),
        ("[send_file: ../secret]", Refused("`..`")),
        ("[send_file: /workspace/../secret]", Refused("`..`")),
        ("[send_file: out/../result.png]", Refused("`..`")),
        ("[send_file: nothing.txt]", Refused("no such file")),
        ("[send_file: result.png/x]", Refused("no such file")),
        ("[send_file: \"result.png\"]", Refused("no such file")),
        ("[send_file: result\0.png]", Refused("no such file")),
        (long.as_str(), Refused("no such file")),
        (longer_name.as_str(), Refused("no such file")),
        ("[send_file: link]", Refused("link")),
        ("[send_file: inner-link]", Refused("link")),
        ("[send_file: etc/passwd]", Refused("link")),
        ("[send_file: magic]", Refused("link")),
        ("[send_file: /workspace]", Refused("not a file")),
        ("[send_file: .]", Refused("not a file")),
        ("[send_file: out]", Refused("not a file")),
        ("[send_file: out/]", Refused("not a file")),
        ("[send_file: result.png/]", Refused("not a file")),
        ("[send_file: fifo]", Refused("not a file")),
        ("[send_file: socket]", Refused("not a file")),
        ("[send_file: .env]", Refused("hidden")),
        ("[send_file: server.PEM]", Refused("hidden")),
        ("[send_file: out.pem/inner.txt]", Refused("hidden")),
        ("[send_file: env-by-another-name]", Refused("hidden")),
        ("[send_file: .git/config]", Refused("hidden")),
        ("[send_file: huge]", Refused("larger than 100 MiB")),
        ("`[send_file: result.png]`", Text),
        ("``a ` [send_file: result.png]``", Text),
        ("`one\n[send_file: result.png] two`", Text),
        ("```\n[send_file: result.png]\n```", Text),
        ("~~~text\n[send_file: result.png]\n~~~", Text),
        ("- item\n   ````\n   ```\n   [send_file: result.png]\n   ````", Text),
        ("```\n[send_file: result.png]", Text),
        ("[send_file: result.png", Text),
        ("[send_file: result\n.png]", Text),
        ("[send file: result.png]", Text),
        ("[ send_file: result.png]", Text),
        ("(send_file: result.png)", Text),
    ];
    assert!(table.len() >= 30);
    for (text, expected) in table {
        let reply = place.attach(text);
        match expected {
            File(file) => {
                assert_eq!(reply.left_out, [], "{text}");
                let [attachment] = reply.attachments.as_slice() else { panic!("{text}: {reply:?}") };
                assert_eq!(attachment.host_path.0, place.root().join(file), "{text}");
                let content = fs::read_to_string(&attachment.artifact.0).unwrap();
                assert_eq!(content, format!("inside {file}"), "{text}");
                assert_eq!(attachment.bytes, content.len() as u64);
                assert!(
                    !reply.text.contains("send_file") && !reply.text.contains("Warning"),
                    "{}",
                    reply.text
                );
            }
            Refused(reason) => {
                assert_eq!(reply.attachments, [], "{text}");
                let [left_out] = reply.left_out.as_slice() else { panic!("{text}: {reply:?}") };
                assert!(left_out.reason.contains(reason), "{text}: {left_out:?}");
                assert!(!reply.text.contains("send_file"), "{}", reply.text);
                assert!(reply.text.contains("Warning: not attached: `"), "{}", reply.text);
            }
            Text => {
                let expected = Reply { text: (*text).to_owned(), ..Reply::default() };
                assert_eq!(reply, expected, "{text}");
            }
        }
    }
}

#[test]
fn a_reply_reads_well_without_its_tags() {
    let place = Place::new();
    let reply = "Done.\n\n[send_file: result.png]\n\nSee [send_file: result.png] and\n- [send_file: linked]\n- more `[send_file: x]`\n";
    let found = place.attach(reply);
    assert_eq!(found.text, "Done.\n\nSee and\n- more `[send_file: x]`");
    assert_eq!(found.attachments.len(), 2, "the same file comes once");
}

#[test]
fn the_same_file_comes_once_however_it_is_written() {
    let place = Place::new();
    let found =
        place.attach("[send_file: result.png][send_file: ./result.png][send_file: /workspace/result.png]");
    assert_eq!((found.attachments.len(), found.left_out.len()), (1, 0));
    assert_eq!(found.text, "");
}

#[test]
fn three_files_that_are_left_out_are_named_and_the_rest_is_counted() {
    let place = Place::new();
    let tags: String = (0..5).map(|number| format!("[send_file: no{number}\u{1b}[2J]")).collect();
    let found = place.attach(&format!("Hm.{tags}"));
    assert_eq!(
        found.text,
        "Hm.\n\nWarning: not attached: `no0\\x1b[2J` (there is no such file), `no1\\x1b[2J` (there is no such file), \
         `no2\\x1b[2J` (there is no such file) and 2 more"
    );
}

#[test]
fn a_reply_brings_twenty_files_and_no_more() {
    let place = Place::new();
    let mut reply = String::new();
    for number in 0..22 {
        fs::write(place.root().join(format!("f{number}")), "x").unwrap();
        reply.push_str(&format!("[send_file: f{number}]\n"));
    }
    let found = place.attach(&reply);
    assert_eq!((found.attachments.len(), found.left_out.len()), (20, 2));
    assert!(found.left_out[0].reason.contains("at most 20"));
}

#[test]
fn a_copy_is_private_and_its_name_means_nothing_to_anybody() {
    let place = Place::new();
    let name = "$(id) <b>;..😀\u{202e}.txt";
    fs::write(place.root().join(name), "x").unwrap();
    let found = place.attach(&format!("[send_file: {name}]"));
    let artifact = &found.attachments[0].artifact.0;
    assert_eq!(artifact.file_name().unwrap(), "01-__id___b__..__.txt");
    assert_eq!(artifact.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(artifact.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
    // Doing it again, after a crash, gives the same.
    assert_eq!(place.attach(&format!("[send_file: {name}]")), found);
}

#[test]
fn what_the_agent_may_not_read_is_not_read_for_it() {
    let place = Place::new();
    let root = place.root();
    fs::set_permissions(root.join("result.png"), fs::Permissions::from_mode(0o000)).unwrap();
    if rustix::process::geteuid().is_root() {
        // The folder is an ordinary user's, the file is root's and closed.
        std::os::unix::fs::chown(&root, Some(1000), Some(1000)).unwrap();
        fs::set_permissions(root.join("out"), fs::Permissions::from_mode(0o700)).unwrap();
        let found = place.attach("[send_file: out/a b.txt]");
        assert!(found.left_out[0].reason.contains("may not read"), "{found:?}");
        let found = place.attach("[send_file: linked]");
        assert!(found.left_out[0].reason.contains("somebody else's file"), "{found:?}");
    }
    let found = place.attach("[send_file: result.png]");
    assert!(found.left_out[0].reason.contains("may not read"), "{found:?}");
}

/// Swaps a path with a link to the outside at least 10,000 times, while it is opened at least 10,000 times.
fn race(swapped: &str, named: &str) {
    const TIMES: u32 = 10_000;
    let place = Place::new();
    let root = place.root();
    let outside = place.folder.path().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    for file in ["deep/x.csv", "result.png"] {
        fs::write(outside.join(file), "outside").unwrap();
    }
    let link = root.join("the-link");
    symlink(if swapped == "result.png" { outside.join(swapped) } else { outside }, &link).unwrap();
    let mapped = MappedRoot { host: &root, inside: Path::new("/workspace"), mask: &place.mask };
    let opened = Root::open(&mapped).unwrap();
    let done = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            let (cwd, target) = (rustix::fs::CWD, root.join(swapped));
            let mut swaps = 0;
            while swaps < TIMES || !done.load(Ordering::Acquire) {
                rustix::fs::renameat_with(cwd, &link, cwd, &target, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
        });
        while inside + refused < TIMES || !swapping.is_finished() {
            match opened.relative(named).and_then(|relative| opened.file(&relative)) {
                Ok(mut file) => {
                    let mut content = String::new();
                    io::Read::read_to_string(&mut file, &mut content).unwrap();
                    assert_eq!(content, format!("inside {named}"));
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
            if inside + refused >= TIMES {
                done.store(true, Ordering::Release);
            }
        }
    });
    assert!(inside > 0 && refused > 0, "both were met: {inside} inside, {refused} refused");
}

#[test]
fn a_folder_that_is_swapped_for_a_link_never_leads_outside() {
    race("out", "out/deep/x.csv");
}

#[test]
fn a_file_that_is_swapped_for_a_link_never_leads_outside() {
    race("result.png", "result.png");
}
