//! A sealed program that sends its model requests which are small on the wire and large in memory: the process that holds
//! the broker stays small, and another run's calls go on.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use cofferdam_attacks::broker::bombs::{Called, Thrown};
use cofferdam_core::{ContainerPolicy, Mode, Mount, MountAccess, Network, RunId, Work};
use cofferdam_e2e::attack_suite::hostile_program;
use cofferdam_e2e::containers::{APPLE_PODMAN, ContainerMode, DOCKER, InContainers};
use cofferdam_e2e::processes::{brokers_of, wait_until};
use cofferdam_e2e::{DetachedNode, Fixture, Marks, Queue, node_id};
use cofferdam_test_marks::once;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::{DeflateEncoder, GzEncoder};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Many requests, on a machine that is shared.
const IN_TIME: Duration = Duration::from_secs(240);
/// What the process may take, with everything else that it does.
const MOST_BYTES: u64 = 256 << 20;
/// What it may not even ask for, so that a broker without bounds ends itself and not the machine.
const MOST_ADDRESSES: u64 = 3 << 30;
/// What each request becomes.
const BOMB: usize = 60 << 20;
const BEGIN: &str = r#"{"model":"m","max_tokens":9,"messages":["#;

struct Stage {
    fixture: Fixture,
    marks: Marks,
    tools: String,
    program: String,
    mode: Mode,
    container: ContainerPolicy,
    bombs: Vec<Bomb>,
}

impl Stage {
    fn native() -> Self {
        let fixture = Fixture::new();
        let marks = Marks::new(&fixture);
        Self::new(fixture, marks, Mode::Native, ContainerPolicy::default())
    }

    fn in_containers(kind: &'static ContainerMode) -> Option<Self> {
        let stage = InContainers::new(kind)?;
        let marks = stage.marks();
        let mut container = ContainerPolicy {
            image: stage.engine.small_image().parse().expect("an image"),
            ..ContainerPolicy::default()
        };
        let mode: Mode = kind.mode.parse().expect("a mode");
        if mode == Mode::Apple {
            let command = (kind.command)(&stage.engine).expect("the stage has found it");
            container.runtime_command = command.to_str().expect("a plain path").parse().expect("a command");
        }
        Some(Self::new(stage.fixture, marks, mode, container))
    }

    fn new(mut fixture: Fixture, marks: Marks, mode: Mode, container: ContainerPolicy) -> Self {
        fixture.set_env("ANTHROPIC_API_KEY", "sk-ant-the-key-of-the-caller");
        fixture.set_env("ANTHROPIC_BASE_URL", &format!("http://{}", model()));
        let (tools, program) = hostile_program(&fixture);
        // In a container the same process is attacked, by another way in: fewer at a time are enough, and still too many.
        let share = if mode == Mode::Native { 1 } else { 4 };
        let bombs = make_bombs(&fixture.path("tools/bombs"), share);
        Self { fixture, marks, tools, program, mode, container, bombs }
    }

    fn over(&self, name: &str) -> String {
        self.marks.folder().join(name).display().to_string()
    }

    fn program_with_bombs(&self) -> Vec<String> {
        let folder = self.fixture.path("tools/bombs").display().to_string();
        vec![self.program.clone(), "bombs".to_owned(), folder, self.over("over")]
    }

    /// Lets a program go that waits for it, or end.
    fn allow(&self, name: &str) {
        fs::write(self.over(name), "").expect("a new file");
    }

    fn enqueue(&self, queue: &Queue, argv: Vec<String>) -> RunId {
        queue.enqueue(&self.fixture, &self.marks, "", |request| {
            request.work = Work::Program { argv };
            request.policy.mounts.push(Mount { path: self.tools.clone().into(), access: MountAccess::Ro });
            request.policy.mode = self.mode;
            request.policy.container = self.container.clone();
            request.policy.network = Network::Sealed;
            request.policy.egress.model = true;
        })
    }

    fn has_made(&self, name: &str) -> bool {
        self.marks.folder().join(name).exists()
    }
}

/// Both forms on each sealed backend; another one is one more line.
macro_rules! on_every_sealed_backend {
    ($($backend:ident: $stage:expr;)+) => { $(
        mod $backend {
            use super::*;

            #[test]
            fn a_broker_stays_small_whatever_a_run_sends_and_serves_another_meanwhile() {
                let Some(stage) = $stage else { return };
                the_role_stays_small(&stage);
            }

            #[test]
            fn a_command_with_its_own_broker_stays_small_whatever_its_program_sends() {
                let Some(stage) = $stage else { return };
                the_command_stays_small(&stage);
            }
        }
    )+ };
}

on_every_sealed_backend! {
    native: Some(Stage::native());
    docker: Stage::in_containers(&DOCKER);
    apple_podman: Stage::in_containers(&APPLE_PODMAN);
}

/// The control: what is sent of one kind at a time is more than the process may become, if it is kept as it was meant.
#[once]
#[test]
fn without_bounds_what_is_sent_at_once_is_larger_than_the_process_may_become() {
    let fixture = Fixture::new();
    let folder = fixture.path("bombs");
    let bombs = make_bombs(&folder, 4);
    for kind in ["wide", "deep", "deep_objects", "beyond"] {
        let bomb = bombs.iter().find(|bomb| bomb.kind == kind).expect("it is made");
        let file = fs::File::open(folder.join(bomb.name())).expect("a bomb");
        let wire = file.metadata().expect("a file").len();
        let bytes = std::io::copy(&mut GzDecoder::new(file), &mut std::io::sink()).expect("gzip");
        let all = bytes * bomb.count as u64;
        assert!(all > MOST_BYTES && wire < bytes / 100, "{kind}: {wire} bytes become {bytes}");
    }
}

/// The broker's own role, beside a dispatcher, with a second run behind it.
fn the_role_stays_small(stage: &Stage) {
    let queue = Queue::open(&stage.fixture);
    let node = DetachedNode::start(&stage.fixture, &node_id(1), None);
    let calls = vec![stage.program.clone(), "calls".to_owned(), stage.over("over")];
    let honest = stage.enqueue(&queue, calls);
    wait_until(IN_TIME, "the honest run calls its model", || stage.has_made("over.calling"));
    let broker = brokers_of(&stage.fixture.state())[0];
    limit_addresses(broker);

    let bombs = stage.enqueue(&queue, stage.program_with_bombs());
    wait_until(IN_TIME, "all bombs are thrown", || {
        // Another may wait for its end, or be on its way to its own program.
        let brokers = brokers_of(&stage.fixture.state());
        assert!(brokers.contains(&broker), "the broker {broker} has ended: {brokers:?}");
        stage.has_made("over.thrown")
    });
    let peak = peak_bytes(broker);
    println!("the broker took {} MiB", peak >> 20);
    stage.allow("over");
    for run in [&honest, &bombs] {
        let _ = queue.wait_for_end_within(run, IN_TIME);
    }
    node.stop();

    assert_thrown(&stage.bombs, &stage.fixture.printed(bombs.as_str()));
    let said = stage.fixture.printed(honest.as_str());
    let called: Called = said.iter().find_map(|line| serde_json::from_str(line).ok()).expect("it says so");
    assert!(called.failed.is_empty() && called.answered > 0, "{called:?}");
    assert!(called.slowest_ms < 30_000, "{called:?}");
    assert!(peak < MOST_BYTES, "the broker took {} MiB", peak >> 20);
}

/// The broker in the process of `cofferdam run`.
fn the_command_stays_small(stage: &Stage) {
    let wait = format!("while ! [ -e {} ]; do sleep 0.02; done", stage.over("go"));
    let script = format!("{wait}; exec {}", stage.program_with_bombs().join(" "));
    let mounts = ["--mount", &stage.tools, "--mount", &stage.marks.mount()];
    let mode = stage.mode.to_string();
    let flags = [&["--mode", &mode, "--network", "sealed", "--model-access"], mounts.as_slice()].concat();
    let mut running = stage.fixture.start(&flags, &script);
    running.wait_for("running");
    let command = running.pid();
    limit_addresses(command);
    stage.allow("go");
    wait_until(IN_TIME, "all bombs are thrown", || {
        assert!(cofferdam_e2e::processes::is_alive(command), "the command has ended");
        stage.has_made("over.thrown")
    });
    let peak = peak_bytes(command);
    println!("the command took {} MiB", peak >> 20);
    stage.allow("over");
    let finished = running.finish();
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_thrown(&stage.bombs, &stage.fixture.printed(&finished.run_id()));
    assert!(peak < MOST_BYTES, "the command took {} MiB", peak >> 20);
}

/// What is refused is refused for what it is, and what is only large is forwarded.
fn assert_thrown(bombs: &[Bomb], said: &[String]) {
    let thrown: Vec<Thrown> = said.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for bomb in bombs {
        let name = bomb.name();
        let one =
            thrown.iter().find(|thrown| thrown.name == name).unwrap_or_else(|| panic!("{name}: {said:?}"));
        let statuses: Vec<_> = one.statuses.clone().into_iter().collect();
        assert_eq!(statuses, [(bomb.status, bomb.count)], "{name}");
    }
}

/// A request that is small on the wire, or only large.
struct Bomb {
    /// How many are sent at a time.
    count: usize,
    kind: &'static str,
    encoding: &'static str,
    /// What each is answered.
    status: u16,
}

impl Bomb {
    /// The name of its file, by which it is sent.
    fn name(&self) -> String {
        format!("{}-{}-{}", self.count, self.kind, self.encoding)
    }
}

/// Makes them in a folder, to be thrown by one in so many.
fn make_bombs(folder: &Path, share: usize) -> Vec<Bomb> {
    fs::create_dir_all(folder).expect("a new folder");
    let mut bombs = Vec::new();
    let mut write = |count: usize, kind, encoding, status, bytes: &[u8]| {
        let bomb = Bomb { count: (count / share).max(2), kind, encoding, status };
        fs::write(folder.join(bomb.name()), bytes).expect("a new file");
        bombs.push(bomb);
    };
    let request = |unit: &str, bytes: usize| format!("{BEGIN}0{}]}}", unit.repeat(bytes / unit.len()));
    let wide = request(",0", BOMB);
    let wide = gzip(wide.as_bytes());
    write(64, "wide", "gzip", 400, &wide);
    write(64, "twice", "gzip, gzip", 415, &gzip(&wide));
    write(8, "blank", "zstd", 400, &zstd(13 << 3, &format!("{BEGIN}0"), b' ', 480));
    write(8, "strings", "gzip", 400, &gzip(request(",\"\"", BOMB).as_bytes()));
    write(64, "deep", "gzip", 400, &gzip(format!("{BEGIN}{}", "[".repeat(BOMB)).as_bytes()));
    let deep_objects = format!("{BEGIN}{}", "{\"a\":".repeat(BOMB / 5));
    write(64, "deep_objects", "gzip", 400, &gzip(deep_objects.as_bytes()));
    let fields: Vec<String> = (0..1 << 20).map(|number| format!("\"{number}\":0")).collect();
    write(8, "fields", "gzip", 400, &gzip(format!("{BEGIN}{{{}}}]}}", fields.join(",")).as_bytes()));
    // A window of some terabytes.
    write(64, "window", "zstd", 413, &zstd(31 << 3 | 7, &format!("{BEGIN}\""), b'x', 480));
    let beyond = request(&format!(",\"{}\"", "x".repeat(1 << 20)), 80 << 20);
    write(64, "beyond", "gzip", 413, &gzip(beyond.as_bytes()));
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(request(",0", 4 << 20).as_bytes()).expect("memory");
    write(64, "deflated", "deflate", 415, &deflate.finish().expect("memory"));
    // Large and well-formed: 30 MB with an image, and as much text as a request may have.
    let image = noise(30_000_000);
    let image = format!(
        r#"{BEGIN}{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{image}"}}}}]}}]}}"#
    );
    write(6, "image", "identity", 200, image.as_bytes());
    write(6, "image", "gzip", 200, &gzip(image.as_bytes()));
    let long = format!("{BEGIN}{{\"role\":\"user\",\"content\":\"");
    write(4, "long", "zstd", 200, &zstd(13 << 3, &long, b'x', 480));
    bombs
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A frame of zstd made by hand: a beginning, one byte again and again in blocks of 128 KiB, and an end that fits.
fn zstd(window: u8, begin: &str, byte: u8, blocks: usize) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    let header = |length: usize, kind: u32| ((length as u32) << 3 | kind).to_le_bytes();
    frame.extend_from_slice(&header(begin.len(), 0)[..3]);
    frame.extend_from_slice(begin.as_bytes());
    for _ in 0..blocks {
        frame.extend_from_slice(&header(128 << 10, 2)[..3]);
        frame.push(byte);
    }
    let end: &[u8] = if byte == b'x' { b"\"}]}" } else { b"]" };
    frame.extend_from_slice(&header(end.len(), 1)[..3]);
    frame.extend_from_slice(end);
    frame
}

/// Letters of base64 that gzip makes no smaller than base64: they repeat beyond what it looks back to.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(state >> 58) as usize],
        )
    };
    let some: String = (0..100_000).map(letter).collect();
    some.repeat(length / some.len())
}

/// A model that reads each request to its end and keeps nothing. Its threads end with the test's process.
fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap_or(0) > 0 {}
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let _ = std::io::copy(&mut (&mut stream).take(length.unwrap_or(0)), &mut std::io::sink());
    let body = r#"{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.get_mut().write_all(answer.as_bytes());
}

fn limit_addresses(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id is positive");
    let limit = Rlimit { current: Some(MOST_ADDRESSES), maximum: Some(MOST_ADDRESSES) };
    prlimit(Some(pid), Resource::As, limit).expect("the process is ours");
}

/// The most memory that a process has had.
fn peak_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says so");
    peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
