//! The worker as a program of its own, for the tests of this crate. It takes the roles that the binary
//! has, with stand-ins for those of the walls: no wall is put up, and the seal is a canned one.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use cofferdam_core::WallPlan;
use cofferdam_worker::Options;
use serde_json::json;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["worker"] => cofferdam_worker::worker_main(options()),
        ["worker", "--heartbeat-ms", ms] => {
            cofferdam_worker::worker_main(Options { heartbeat: milliseconds(ms), ..options() })
        }
        ["worker", "--job-within-ms", ms] => {
            cofferdam_worker::worker_main(Options { job_within: milliseconds(ms), ..options() })
        }
        ["worker", "--phase-outputs", folder] => {
            cofferdam_worker::worker_main(Options { phase_outputs: folder.into(), ..options() })
        }
        ["worker", "--exit-grace-ms", ms] => {
            cofferdam_worker::worker_main(Options { exit_grace: milliseconds(ms), ..options() })
        }
        ["enter-walls", "--control-fd", fd, "--measure", paths, plan, program, ref rest @ ..] => {
            let fd = fd.parse().expect("the number of a descriptor");
            serde_json::from_str::<WallPlan>(plan).expect("a plan of walls");
            enter_walls(fd, paths, program, rest)
        }
        _ => panic!("unknown role {args:?}"),
    }
}

fn options() -> Options {
    Options::of_this_process().expect("our own path")
}

fn milliseconds(text: &str) -> Duration {
    Duration::from_millis(text.parse().expect("a number"))
}

/// Bash stands in for the real role: safe code cannot close an inherited descriptor.
fn enter_walls(control_fd: RawFd, paths: &str, program: &str, rest: &[&str]) -> ExitCode {
    if std::env::var_os("PROBE_FAILS").is_some() {
        eprintln!("the probe was told to fail");
        return ExitCode::FAILURE;
    }
    let script = format!(
        r#"printf '{{"seal":%s}}\n' "$1" >&{control_fd}
        shift
        read -r <&{control_fd} || exit 0
        found=$(type -P -- "$1")
        if [ ! -x "$found" ] || [ -d "$found" ]; then
            printf '{{"not_started":"cannot start %s"}}\n' "$1" >&{control_fd}
            exit 127
        fi
        exec {control_fd}>&-
        exec "$@""#
    );
    let error = Command::new("bash").args(["-c", &script, "bash", &seal(paths), program]).args(rest).exec();
    panic!("failed to start bash: {error}");
}

fn seal(paths: &str) -> String {
    let paths: Vec<String> = serde_json::from_str(paths).expect("a list of paths");
    let refused = json!({ "refused": "ENETUNREACH" });
    json!({
        "uid": 1000, "gid": 1000,
        "capabilities": { "effective": 0, "permitted": 0, "inheritable": 0, "bounding": 0, "ambient": 0 },
        "no_new_privileges": true, "seccomp_mode": 2, "system_calls": {}, "landlock_abi": 1,
        "mounts": [], "writable": paths, "visible_processes": 2,
        "limits": { "open_files": 1, "processes": 1, "file_bytes": null, "core_bytes": 0 },
        "network": { "interfaces": [], "ipv4": refused, "ipv6": refused },
    })
    .to_string()
}
