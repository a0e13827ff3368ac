//! Backups: taken while runs are under way, put into another state folder or back in place, and gone on with truthfully.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_core::{RetryPolicy, RunId, RunState};
use cofferdam_e2e::processes::{wait_until, with_role};
use cofferdam_e2e::{Database, Fixture, Marks, Queue, Record, Service};
use cofferdam_test_marks::once;

/// A machine that is shared takes its time.
const IN_TIME: Duration = Duration::from_secs(60);

/// A run that waits until the test lets it go on. It may be tried twice.
fn enqueue_held(fixture: &Fixture, queue: &Queue, marks: &Marks, name: &str) -> RunId {
    queue.enqueue(fixture, marks, &held_body(marks, name), |request| {
        request.retry = RetryPolicy { max_attempts: 2, first_delay_ms: 10, max_delay_ms: 10 };
    })
}

fn held_body(marks: &Marks, name: &str) -> String {
    let go = marks.folder().join(name);
    let go = go.display();
    format!("echo before; while [ ! -e {go} ]; do sleep 0.05; done; echo after; echo more >> README.md")
}

fn release(marks: &Marks, name: &str) {
    fs::write(marks.folder().join(name), "").expect("a folder of the test");
}

fn starts(marks: &Marks, count: usize) {
    wait_until(IN_TIME, &format!("{count} agents have started"), || marks.starts() == count);
}

/// `cofferdam db backup`, to a new file.
fn back_up(fixture: &Fixture) -> PathBuf {
    let file = fixture.path("backup.db");
    let done = fixture.cofferdam(["db".as_ref(), "backup".as_ref(), file.as_os_str()]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("not in it: the files that runs left"), "{}", done.stderr);
    assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    file
}

/// A state folder with nothing in it but the backup.
fn restored(backup: &Path) -> Fixture {
    let copy = Fixture::without_repository();
    fs::DirBuilder::new().mode(0o700).create(copy.state()).expect("a new folder");
    fs::copy(backup, copy.state().join("cofferdam.db")).expect("the backup is put in place");
    copy
}

fn outcomes(record: &Record) -> Vec<String> {
    let told = record.events.iter().filter(|event| event["type"] == "run.retry_scheduled");
    told.map(|event| event["data"]["outcome"]["class"].as_str().unwrap_or_default().to_owned()).collect()
}

fn is_whole(fixture: &Fixture) {
    let checked = fixture.cofferdam(["db", "check"]);
    assert_eq!(checked.code, Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn a_copy_goes_on_beside_the_original_and_touches_nothing_of_it() {
    let original = Fixture::new();
    let (marks, queue) = (Marks::new(&original), Queue::open(&original));
    let done = original.run(&[], "echo evidence >> README.md");
    assert_eq!(done.outcome(), "succeeded", "{}", done.stderr);
    let done = done.run_id();
    // One of a terminal, one of the service, and one that waits.
    let terminal =
        original.start(&["--mount", &marks.mount()], &marks.script(&held_body(&marks, "terminal")));
    starts(&marks, 1);
    let attached =
        original.cofferdam(["runs", "list", "--json"]).json()[0]["run"].as_str().map(str::to_owned);
    let attached = attached.expect("the newest is under way");
    let running = enqueue_held(&original, &queue, &marks, "first");
    let service = Service::start(&original, &["--capacity", "1"]);
    starts(&marks, 2);
    let queued = enqueue_held(&original, &queue, &marks, "second");
    let backup = back_up(&original);
    let shim = with_role(&original.state(), "shim");
    assert_eq!(shim.len(), 2);

    // The sandbox of what ran is not in the copy: that attempt is lost there, and the run is tried again. What waited is
    // executed there too, in a sandbox of the same id as the original's will have.
    let copy = restored(&backup);
    let copied_queue = Queue::open(&copy);
    let copied = Service::start(&copy, &["--capacity", "2"]);
    starts(&marks, 4);
    assert_eq!(with_role(&original.state(), "shim"), shim, "the original's sandbox lives");
    assert_eq!(queue.run(&running).state, RunState::Running);
    release(&marks, "first");
    assert_eq!(queue.wait_for_end_within(&running, IN_TIME), RunState::Succeeded);
    assert_eq!(copied_queue.wait_for_end_within(&running, IN_TIME), RunState::Succeeded);
    starts(&marks, 5);
    // Both execute the first attempt of the same run now. One of them ends.
    let cancelled = copy.cofferdam(["runs", "cancel", queued.as_str()]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    assert_eq!(copied_queue.wait_for_end_within(&queued, IN_TIME), RunState::Cancelled);
    wait_until(IN_TIME, "its sandbox is gone", || with_role(&copy.state(), "shim").is_empty());
    assert_eq!(queue.run(&queued).state, RunState::Running, "the original's goes on");
    release(&marks, "second");
    assert_eq!(queue.wait_for_end_within(&queued, IN_TIME), RunState::Succeeded);
    release(&marks, "terminal");
    let terminal = terminal.finish();
    assert_eq!(terminal.outcome(), "succeeded", "{}", terminal.stderr);
    copied.stop();
    service.stop();

    for run in [&running, &queued] {
        let record = Record::of(&original, run.as_str());
        record.assert_ended_once();
        assert_eq!((record.outcome().as_str(), &record.shown["attempts"]), ("succeeded", &1.into()));
        assert_eq!(record.messages(), ["before", "after"]);
        assert!(record.diff.contains("+more"), "{}", record.diff);
    }
    let again = Record::of(&copy, running.as_str());
    again.assert_ended_once();
    assert_eq!((again.outcome().as_str(), &again.shown["attempts"]), ("succeeded", &2.into()));
    assert_eq!(outcomes(&again), ["lost"], "{:#?}", again.events);
    Record::of(&copy, queued.as_str()).assert_ended_once();
    let lost = Record::of(&copy, &attached);
    lost.assert_ended_once();
    assert_eq!(lost.outcome(), "failed/lost", "its terminal is the original's");
    is_whole(&original);
    is_whole(&copy);

    // What had ended before keeps its evidence, which is the original's to remove.
    let kept = Record::of(&copy, &done);
    let before = Record::of(&original, &done);
    assert_eq!((&kept.events, &kept.diff), (&before.events, &before.diff));
    assert!(kept.diff.contains("+evidence"), "{}", kept.diff);
    assert_eq!(copy.cofferdam(["runs", "rm", &done]).code, Some(0));
    assert_eq!(Record::of(&original, &done).diff, before.diff, "the original's files are as they were");
}

#[once]
#[test]
fn files_that_were_not_copied_are_said_to_be_gone_and_those_that_were_are_found() {
    let original = Fixture::new();
    let finished = original.run(&[], "echo evidence >> README.md");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let run = finished.run_id();
    let copy = restored(&back_up(&original));
    let files = original.path("files");
    fs::rename(original.state().join("runs"), &files).expect("the original's files are elsewhere");
    let gone = copy.cofferdam(["runs", "diff", &run]);
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(gone.stderr.contains(&format!("the diff of {run} is gone")), "{}", gone.stderr);
    assert!(gone.stderr.contains("hint: if the record was restored from a backup"), "{}", gone.stderr);
    assert_eq!(copy.cofferdam(["runs", "show", &run]).code, Some(0), "the rest is there");
    let service = Service::start(&copy, &[]);
    let key = service.key();
    let ask = |path: &str| {
        let url = format!("{}/api/v1/runs/{run}/{path}", service.url());
        let asked = std::process::Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", &format!("X-API-Key: {key}"), &url])
            .output();
        String::from_utf8_lossy(&asked.expect("curl is installed").stdout).into_owned()
    };
    assert_eq!(
        (ask("diff"), ask("artifacts/1/diff"), ask("events")),
        ("404".into(), "404".into(), "200".into())
    );
    fs::remove_dir_all(copy.state().join("runs")).expect("it is empty");
    fs::rename(&files, copy.state().join("runs")).expect("they are put in place");
    assert_eq!((ask("diff"), ask("artifacts/1/diff")), ("200".into(), "200".into()));
    service.stop();
    let found = copy.cofferdam(["runs", "diff", &run]);
    assert!(String::from_utf8_lossy(&found.stdout).contains("+evidence"), "{}", found.stderr);
}

#[test]
fn a_backup_that_is_put_back_in_place_goes_on_with_what_still_runs() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let (held, over, late) = {
        let queue = Queue::open(&fixture);
        let held = enqueue_held(&fixture, &queue, &marks, "held");
        let over = enqueue_held(&fixture, &queue, &marks, "over");
        let service = Service::start(&fixture, &["--drain", "0"]);
        starts(&marks, 2);
        back_up(&fixture);
        // After the backup one ends, and another is accepted.
        release(&marks, "over");
        assert_eq!(queue.wait_for_end_within(&over, IN_TIME), RunState::Succeeded);
        let late = queue.enqueue(&fixture, &marks, "true", |_| {});
        let _ = queue.wait_for_end_within(&late, IN_TIME);
        service.stop();
        (held, over, late)
    };
    // As the guide says it.
    let state = fixture.state();
    for entry in fs::read_dir(&state).expect("it is there").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("cofferdam.db") {
            fs::rename(entry.path(), state.join(format!("before-{name}"))).expect("it is put aside");
        }
    }
    fs::copy(fixture.path("backup.db"), state.join("cofferdam.db")).expect("the backup is put in place");

    let service = Service::start(&fixture, &[]);
    let queue = Queue::open(&fixture);
    // Its sandbox is gone since, so that it is done again; the other one is still in its own.
    assert_eq!(queue.wait_for_end_within(&over, IN_TIME), RunState::Succeeded);
    assert_eq!(queue.run(&over).attempts, 2);
    assert_eq!(queue.run(&held).state, RunState::Running);
    release(&marks, "held");
    assert_eq!(queue.wait_for_end_within(&held, IN_TIME), RunState::Succeeded);
    assert_eq!(queue.run(&held).attempts, 1, "the same attempt to its end");
    service.stop();
    let record = Record::of(&fixture, held.as_str());
    record.assert_ended_once();
    assert_eq!(record.messages(), ["before", "after"], "each line once and in order");
    let record = Record::of(&fixture, over.as_str());
    record.assert_ended_once();
    assert_eq!(outcomes(&record), ["lost"]);
    assert_eq!(fixture.cofferdam(["runs", "show", late.as_str()]).code, Some(2), "it came after the backup");
    is_whole(&fixture);
}

#[once]
#[test]
fn a_backup_is_refused_with_what_to_type() {
    let mut fixture = Fixture::without_repository();
    let file = fixture.path("backup.db");
    let back_up = |fixture: &Fixture, flags: &[&str]| {
        let mut command = fixture.command();
        command.args(["db", "backup"]).arg(&file).args(flags);
        cofferdam_e2e::Finished::of(command)
    };
    let nothing = back_up(&fixture, &[]);
    assert_eq!(nothing.code, Some(3), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("there is no record"), "{}", nothing.stderr);
    assert_eq!(fixture.cofferdam(["db", "migrate"]).code, Some(0));
    let copied = back_up(&fixture, &["--json"]);
    assert_eq!((copied.code, &copied.json()["runs"]), (Some(0), &0.into()), "{}", copied.stderr);
    let exists = back_up(&fixture, &[]);
    assert_eq!(exists.code, Some(3), "{}", exists.stderr);
    assert!(exists.stderr.contains("exists\nhint: type another name, or add --force"), "{}", exists.stderr);
    assert_eq!(back_up(&fixture, &["--force"]).code, Some(0));
    let record = fixture.state().join("cofferdam.db");
    let itself =
        fixture.cofferdam(["db".as_ref(), "backup".as_ref(), "--force".as_ref(), record.as_os_str()]);
    assert_eq!(itself.code, Some(2), "{}", itself.stderr);
    assert_eq!(fixture.cofferdam(["db", "check"]).code, Some(0));

    let Some(database) = Database::create() else { return };
    fixture.set_env("COFFERDAM_STORE_URL", &database.url());
    let elsewhere = back_up(&fixture, &["--force"]);
    assert_eq!(elsewhere.code, Some(3), "{}", elsewhere.stderr);
    let url = database.url();
    let password = url.split(':').nth(2).and_then(|rest| rest.split('@').next()).expect("it has one");
    let command = elsewhere.stderr.split('`').nth(1).expect("a command to type").to_owned();
    assert!(command.starts_with("pg_dump ") && !elsewhere.stderr.contains(password), "{}", elsewhere.stderr);
    // It can be typed as it is.
    assert_eq!(fixture.cofferdam(["db", "migrate"]).code, Some(0));
    let typed = std::process::Command::new("sh").args(["-c", &command]).env("PGPASSWORD", password).output();
    let typed = typed.expect("a shell");
    assert!(typed.status.success(), "{command}: {}", String::from_utf8_lossy(&typed.stderr));
    assert!(fs::read(&file).expect("it was written").starts_with(b"PGDMP"));
}
