//! The command line of a container: every wall that the runtime can put up, named one by one, so that no default of a
//! runtime or of an image decides. Nothing secret is in it: anybody may read it, and `inspect` shows it.

use std::path::Path;

use cofferdam_core::{Network, Policy, WORKER_PIDS};

use super::abilities::{Abilities, Kind};
use crate::backend::Refusal;
use crate::container::{Bound, Memory};
use crate::local::Identity;

/// How much later than ours the runtime's own clock runs out, where it has one.
const BACKSTOP_SECONDS: u64 = 60;

/// What a container is made of.
pub(super) struct Parts<'a> {
    pub(super) policy: &'a Policy,
    pub(super) abilities: &'a Abilities,
    pub(super) name: &'a str,
    pub(super) who: Identity,
    /// Whether we are root, and with us the runtime.
    pub(super) root: bool,
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) bounds: Vec<Bound>,
    pub(super) memories: Vec<Memory>,
    /// Folders that the image declares as volumes.
    pub(super) volumes: &'a [String],
    /// Our binary inside, and its arguments.
    pub(super) command: Vec<String>,
}

/// The arguments of `RUNTIME run` in the foreground.
pub(super) fn arguments(parts: &Parts<'_>) -> Result<Vec<String>, Refusal> {
    let Parts { policy, abilities, name, who, .. } = parts;
    let (program, rest) = parts.command.split_first().expect("a container has a command");
    let mut line = Line { abilities, words: vec!["run".to_owned(), "--interactive".to_owned()] };
    line.must("--name", name);
    // What runs is what somebody put there.
    line.may("--pull", "never");
    line.word("--read-only");
    line.must("--cap-drop", "ALL");
    line.may("--security-opt", "no-new-privileges");
    line.must("--user", &format!("{}:{}", who.uid, who.gid));
    if abilities.kind == Kind::Podman && !parts.root {
        // Without root it makes a user namespace, in which the owner of the workspace would be root.
        line.may("--userns", "keep-id");
    }
    network(&mut line, policy);
    limits(&mut line, policy);
    line.may("--ipc", "private");
    line.may("--cgroupns", "private");
    line.may("--hostname", "cofferdam");
    line.may("--workdir", "/");
    // The client passes the worker's output on; a log would be a second copy, which nobody removes in time.
    line.may("--log-driver", "none");
    switches(&mut line);
    for (key, value) in &parts.labels {
        line.may("--label", &format!("{key}={value}"));
    }
    for bound in &parts.bounds {
        line.bind(bound)?;
    }
    for memory in &parts.memories {
        line.memory(memory);
    }
    cover(&mut line, parts);
    line.must("--entrypoint", program);
    line.word(&policy.container.image.with_tag());
    line.words.extend(rest.iter().cloned());
    Ok(line.words)
}

fn network(line: &mut Line<'_>, policy: &Policy) {
    match policy.network {
        Network::None | Network::Sealed => line.must("--network", "none"),
        Network::Open => {
            if let Some(name) = policy.container.network.name() {
                line.must("--network", name);
            }
            match line.abilities.kind {
                Kind::Docker | Kind::Nerdctl => {
                    line.may("--add-host", &format!("{}:host-gateway", crate::container::HOST_NAME));
                }
                Kind::Podman | Kind::Apple | Kind::Unknown => {}
            }
        }
    }
}

fn limits(line: &mut Line<'_>, policy: &Policy) {
    let limits = &policy.limits;
    let memory = match limits.memory_bytes {
        // Apple's counts in these, and has no suffix for bytes.
        bytes if bytes % (1 << 20) == 0 => format!("{}m", bytes >> 20),
        bytes => format!("{bytes}b"),
    };
    line.must("--memory", &memory);
    // Memory and swap together: the same, so that there is no swap.
    line.may("--memory-swap", &memory);
    let cpus = match (limits.cpus_milli / 1000, limits.cpus_milli % 1000) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest:03}"),
    };
    line.must("--cpus", &cpus);
    line.may("--pids-limit", &(u64::from(limits.pids) + WORKER_PIDS).to_string());
    if line.abilities.kind == Kind::Podman {
        // Podman ends it by itself then. That matters only if our shim was killed: nobody else would hold the clock.
        let seconds = policy.timeout_ms.saturating_add(policy.grace_ms).div_ceil(1000) + BACKSTOP_SECONDS;
        if let Ok(seconds) = i32::try_from(seconds) {
            line.may("--timeout", &seconds.to_string());
        }
    }
}

/// Options that are on or off.
fn switches(line: &mut Line<'_>) {
    // One that an image brings would be one more process.
    if line.abilities.has("--no-healthcheck") {
        line.word("--no-healthcheck");
    }
    match line.abilities.kind {
        Kind::Docker | Kind::Podman | Kind::Nerdctl => {
            // Our worker reaps; another init in front would make it process 2.
            line.switch_off("--init");
            // Podman makes a read-only root writable in places, and hands on the caller's proxies with their passwords.
            line.switch_off("--read-only-tmpfs");
            line.switch_off("--http-proxy");
        }
        // They have no way to say so, and do nothing of the kind.
        Kind::Apple | Kind::Unknown => {}
    }
}

/// Folders that the image declares as volumes would be writable, and stay behind: they are covered.
fn cover(line: &mut Line<'_>, parts: &Parts<'_>) {
    match line.abilities.kind {
        Kind::Docker | Kind::Podman | Kind::Nerdctl | Kind::Unknown => {}
        // It makes no volume that was not asked for.
        Kind::Apple => return,
    }
    let taken = |path: &str| {
        let path = Path::new(path);
        parts.memories.iter().any(|memory| memory.target == path)
            || parts.bounds.iter().any(|bound| bound.target == path)
    };
    for path in parts.volumes.iter().filter(|path| !taken(path)) {
        line.must("--tmpfs", &format!("{path}:ro"));
    }
}

struct Line<'a> {
    abilities: &'a Abilities,
    words: Vec<String>,
}

impl Line<'_> {
    fn word(&mut self, word: &str) {
        self.words.push(word.to_owned());
    }

    /// An option that was checked before.
    fn must(&mut self, option: &str, value: &str) {
        self.words.extend([option.to_owned(), value.to_owned()]);
    }

    /// An option that is given to whoever knows it: the seal is measured from inside, and is refused if it is weaker
    /// without.
    fn may(&mut self, option: &str, value: &str) {
        if self.abilities.has(option) {
            self.must(option, value);
        }
    }

    fn switch_off(&mut self, option: &str) {
        if self.abilities.has(option) {
            self.words.push(format!("{option}=false"));
        }
    }

    fn bind(&mut self, bound: &Bound) -> Result<(), Refusal> {
        let (source, target) = (plain(&bound.source)?, plain(&bound.target)?);
        if self.abilities.has("--mount") {
            let access = if bound.read_only { ",readonly" } else { "" };
            self.must("--mount", &format!("type=bind,source={source},target={target}{access}"));
        } else {
            let access = if bound.read_only { ":ro" } else { "" };
            self.must("--volume", &format!("{source}:{target}{access}"));
        }
        Ok(())
    }

    fn memory(&mut self, memory: &Memory) {
        let path = memory.target.display();
        let owner = |option: &&str| !option.starts_with("uid=") && !option.starts_with("gid=");
        let value = match self.abilities.kind {
            Kind::Docker | Kind::Nerdctl | Kind::Unknown => format!("{path}:{}", memory.options),
            // It takes no numbers, and gives the folder to the user of the container instead.
            Kind::Podman => {
                let options: Vec<&str> = memory.options.split(',').filter(owner).chain(["U"]).collect();
                format!("{path}:{}", options.join(","))
            }
            // It takes a path and nothing else; everybody may write there, and nobody else is there.
            Kind::Apple => path.to_string(),
        };
        self.must("--tmpfs", &value);
    }
}

/// A path that no runtime takes for something else.
pub(super) fn plain(path: &Path) -> Result<&str, Refusal> {
    let text = path.to_str().filter(|text| !text.contains([',', ':', '"', '\n']));
    text.ok_or_else(|| {
        Refusal::new(
            format!("{} cannot be shown: a runtime's command line has no way to say it", path.display()),
            "use a path without a comma, a colon or a quote, or --mode native",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn podman() -> Abilities {
        let options = [
            "--pull",
            "--read-only",
            "--read-only-tmpfs",
            "--cap-drop",
            "--security-opt",
            "--user",
            "--userns",
            "--network",
            "--add-host",
            "--memory",
            "--memory-swap",
            "--cpus",
            "--pids-limit",
            "--timeout",
            "--ipc",
            "--cgroupns",
            "--hostname",
            "--workdir",
            "--log-driver",
            "--label",
            "--mount",
            "--tmpfs",
            "--init",
            "--http-proxy",
            "--no-healthcheck",
            "--entrypoint",
            "--name",
            "--interactive",
        ];
        Abilities::read("podman", "podman version 4.3.1", &options.join("\n"))
    }

    fn apple() -> Abilities {
        let options = [
            "--read-only",
            "--cap-drop",
            "--user",
            "--network",
            "--memory",
            "--cpus",
            "--mount",
            "--tmpfs",
            "--entrypoint",
            "--name",
            "--interactive",
        ];
        Abilities::read("container", "container CLI version 1.0.0", &options.join("\n"))
    }

    fn line(abilities: &Abilities, policy: &Policy) -> Vec<String> {
        let parts = Parts {
            policy,
            abilities,
            name: "cofferdam-x",
            who: Identity { uid: 101_000, gid: 101_000, ids: None },
            root: false,
            labels: vec![("dev.cofferdam.run", "x".to_owned())],
            bounds: vec![
                Bound::read_only(Path::new("/bin/cofferdam"), "/run/cofferdam/cofferdam"),
                Bound { source: "/w".into(), target: "/workspace".into(), read_only: false },
            ],
            memories: vec![Memory {
                target: "/tmp".into(),
                options: "rw,nosuid,nodev,exec,size=1024,mode=1777,uid=101000,gid=101000".to_owned(),
            }],
            volumes: &["/data".to_owned(), "/workspace".to_owned()],
            command: vec!["/run/cofferdam/cofferdam".to_owned(), "worker".to_owned()],
        };
        arguments(&parts).unwrap()
    }

    #[test]
    fn a_sealed_container_of_podman_has_every_wall() {
        let policy = Policy { network: Network::Sealed, ..Policy::default() };
        let expected = "run --interactive --name cofferdam-x --pull never --read-only --cap-drop ALL \
             --security-opt no-new-privileges --user 101000:101000 --userns keep-id --network none --memory 2048m \
             --memory-swap 2048m --cpus 1 --pids-limit 264 --timeout 662 --ipc private --cgroupns private \
             --hostname cofferdam --workdir / --log-driver none --no-healthcheck --init=false \
             --read-only-tmpfs=false --http-proxy=false --label dev.cofferdam.run=x \
             --mount type=bind,source=/bin/cofferdam,target=/run/cofferdam/cofferdam,readonly \
             --mount type=bind,source=/w,target=/workspace \
             --tmpfs /tmp:rw,nosuid,nodev,exec,size=1024,mode=1777,U --tmpfs /data:ro \
             --entrypoint /run/cofferdam/cofferdam cofferdam/worker:latest worker";
        assert_eq!(line(&podman(), &policy).join(" "), expected);
    }

    #[test]
    fn an_open_container_has_the_network_that_was_named() {
        let mut policy = Policy { network: Network::Open, ..Policy::default() };
        let text = |abilities: &Abilities, policy: &Policy| line(abilities, policy).join(" ");
        assert!(!text(&podman(), &policy).contains("--network"), "its own");
        policy.container.network = "front".parse().unwrap();
        assert!(text(&podman(), &policy).contains("--network front"));
        assert!(!text(&podman(), &policy).contains("host-gateway"));
        let mut docker = podman();
        docker.kind = Kind::Docker;
        assert!(text(&docker, &policy).contains("--add-host host.docker.internal:host-gateway"));
        assert!(!text(&docker, &policy).contains("--timeout"), "it means something else there, or nothing");
    }

    #[test]
    fn a_runtime_is_told_nothing_that_it_does_not_know() {
        let expected = "run --interactive --name cofferdam-x --read-only --cap-drop ALL --user 101000:101000 \
             --network none --memory 2048m --cpus 1 \
             --mount type=bind,source=/bin/cofferdam,target=/run/cofferdam/cofferdam,readonly \
             --mount type=bind,source=/w,target=/workspace --tmpfs /tmp \
             --entrypoint /run/cofferdam/cofferdam cofferdam/worker:latest worker";
        assert_eq!(line(&apple(), &Policy::default()).join(" "), expected);
    }

    #[test]
    fn a_path_that_a_command_line_cannot_say_is_refused() {
        for path in ["/a,b", "/a:b", "/a\"b"] {
            let refusal = plain(Path::new(path)).unwrap_err();
            assert!(refusal.problem.contains(path), "{refusal:?}");
        }
        assert_eq!(plain(Path::new("/a b=c")), Ok("/a b=c"));
    }
}
