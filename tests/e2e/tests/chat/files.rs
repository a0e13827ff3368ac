//! The agent's own folder, and the files that it sends.

use std::fs;
use std::path::Path;

use cofferdam_scripted_model::{Answer, Script};
use serde_json::json;

use crate::chat::stage::{Place, Stage};

#[test]
fn a_file_that_the_agent_wrote_comes_with_its_reply() {
    sends_a_file(Place::Native, "mapped");
}

#[test]
fn a_file_comes_from_the_same_path() {
    sends_a_file(Place::Native, "same-path");
}

#[test]
fn a_file_that_was_written_in_a_container_comes_with_its_reply() {
    sends_a_file(Place::Docker, "mapped");
}

#[test]
fn a_file_comes_from_the_same_path_in_a_container() {
    sends_a_file(Place::Docker, "same-path");
}

fn sends_a_file(place: Place, mapping: &str) {
    // What it is to say depends on where it is, so it says what it found out.
    let Some(mut stage) = Stage::in_place(place, Script::new([])) else { return };
    let folder = stage.add_agent("coder", "claude_code", place);
    let inside = if mapping == "mapped" { Path::new("/workspace").to_owned() } else { folder.clone() };
    let work = "echo drawn > 'my result.txt'; pwd > where; cat .env > seen 2>&1; rm -f old; git --version > /dev/null";
    let answers = [
        Answer::shell(work),
        Answer::text(format!(
            "Here: [send_file: {}/my result.txt]\n[send_file: .env][send_file: /etc/passwd]",
            inside.display()
        )),
    ];
    stage.play(Script::new(answers));
    stage.set("path_mapping_mode", json!(mapping));
    fs::write(folder.join(".env"), "SECRET=1").expect("a new file");
    fs::write(folder.join("old"), "x").expect("a new file");
    let answer = stage.ask("coder", &[], "draw something");

    let reply = &answer["reply"];
    let attached = &reply["attachments"][0];
    assert_eq!(attached["host_path"], folder.join("my result.txt").to_str().expect("text"), "{reply}");
    let kept = fs::read_to_string(attached["artifact"].as_str().expect("a path")).expect("it is kept");
    assert_eq!(kept, "drawn\n");
    let text = reply["text"].as_str().expect("a text");
    assert!(text.starts_with("Here:\n\nWarning: not attached: `.env`"), "{text}");
    assert_eq!(reply["left_out"].as_array().map(Vec::len), Some(2), "{reply}");

    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    assert_eq!(
        (read("my result.txt"), read("where").trim()),
        ("drawn\n".to_owned(), inside.to_str().expect("text"))
    );
    assert_eq!(
        (read("seen"), read(".env")),
        (String::new(), "SECRET=1".to_owned()),
        "it was covered, and stays"
    );
    assert!(!folder.join("old").exists(), "what it removed is gone");
    let owner = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(folder.join(name)).map(|found| (found.uid(), found.gid())).expect("it is there")
    };
    assert_eq!(owner("where").0, owner("").0, "its files belong to whom the folder belongs to");
}
