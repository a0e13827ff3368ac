//! Ordinary programs do not notice the walls.

use std::process::Command;

use crate::harness::{As, Test, all_walls, behind, open_folder, succeeded};

pub(crate) const TESTS: &[Test] = &[
    ("shell_pipelines_work", shell_pipelines_work),
    ("git_commits_and_clones", git_commits_and_clones),
    ("python_starts_threads_and_processes", python_starts_threads_and_processes),
    ("node_reads_and_spawns", node_reads_and_spawns),
    ("a_compiler_builds_a_program", a_compiler_builds_a_program),
    ("java_starts", java_starts),
];

/// Runs a script with all walls and returns what it printed.
fn run(who: As, script: &str) -> String {
    let folder = open_folder();
    let mut command = behind(&all_walls(folder.path()), who, &["bash", "-euc", script]);
    command.current_dir(folder.path()).env("HOME", folder.path()).env("TMPDIR", folder.path());
    succeeded(command.env("PATH", "/usr/local/bin:/usr/bin:/bin").output().unwrap())
}

/// Says so when a program is not on this machine.
fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("PATH=/usr/local/bin:/usr/bin:/bin command -v {program}")])
        .output()
        .unwrap()
        .status
        .success();
    if !found {
        println!("SKIPPED: {program} is not installed");
    }
    found
}

fn shell_pipelines_work(who: As) {
    let printed = run(
        who,
        "seq 1 100000 | head -n 3 | sort -r; echo to-null >/dev/null; echo to-stdout >/dev/stdout | cat
         mkfifo pipe; (echo through >pipe &); cat pipe; mkdir -p a/b c; echo x >a/b/f; mv a/b/f c/g; ln c/g c/h
         diff <(echo 1) <(echo 1); timeout 5 sleep 0.01; trap 'echo trapped' TERM; kill -TERM $$; wait",
    );
    assert_eq!(printed, "3\n2\n1\nto-stdout\nthrough\ntrapped\n");
}

fn git_commits_and_clones(who: As) {
    if !has("git") {
        return;
    }
    let printed = run(
        who,
        "git init -q repo; cd repo; git config user.email a@b; git config user.name n; echo x >f; git add f
         git commit -qm one; git gc -q; cd ..; git clone -q repo copy; git -C copy log --format=%s",
    );
    assert_eq!(printed, "one\n");
}

fn python_starts_threads_and_processes(who: As) {
    if !has("python3") {
        return;
    }
    let printed = run(
        who,
        "python3 - <<'END'
import subprocess, threading, socket, tempfile, os, multiprocessing, select
t = threading.Thread(target=lambda: print('thread', flush=True)); t.start(); t.join()
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='', flush=True)
s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())
tempfile.TemporaryFile().write(b'x'); os.memfd_create('m'); select.epoll(); os.pidfd_open(os.getpid())
with multiprocessing.get_context('fork').Pool(2) as p: print(sum(p.map(abs, [-1, -2])))
master, slave = os.openpty(); os.isatty(slave)
END",
    );
    assert_eq!(printed, "thread\nchild\n3\n");
}

fn node_reads_and_spawns(who: As) {
    if !has("node") {
        return;
    }
    let printed = run(
        who,
        "node -e \"const c=require('child_process');require('fs').writeFileSync('f','x');
         require('fs').promises.readFile('f','utf8').then(t=>{console.log(t+c.execSync('echo y'));
         const w=new (require('worker_threads').Worker)('console.log(1)',{eval:true})})\"",
    );
    assert_eq!(printed.split_whitespace().collect::<Vec<_>>(), ["xy", "1"]);
}

fn a_compiler_builds_a_program(who: As) {
    if !has("gcc") {
        return;
    }
    let printed =
        run(who, "echo 'int puts(const char*);int main(){puts(\"built\");}' >a.c; gcc a.c -o a; ./a");
    assert_eq!(printed, "built\n");
}

fn java_starts(who: As) {
    if !has("java") {
        return;
    }
    run(who, "java -Xmx64m -version");
}
