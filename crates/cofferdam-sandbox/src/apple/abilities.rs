//! What a runtime can do, by what it says of itself: the options of its `run`, and which program it is.

use std::collections::BTreeSet;

use cofferdam_core::{LimitsRule, Network, Policy};

use crate::backend::{Refusal, RefusalKind};
use crate::supervision::Runtime;

/// An option is written near the left edge; further right is a description that has been wrapped.
const DEEPEST_OPTION: usize = 8;

/// Programs whose options mean the same and take different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Docker,
    Podman,
    Nerdctl,
    /// Apple's `container`: a small virtual machine for each container.
    Apple,
    /// Another one, taken to be like `docker`.
    Unknown,
}

/// What a runtime can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Abilities {
    pub(crate) kind: Kind,
    /// What it says of its version, in one line.
    pub(crate) version: String,
    /// The long options of `run`.
    options: BTreeSet<String>,
    /// What it is called, for people.
    name: String,
}

impl Abilities {
    /// Asks the runtime.
    pub(crate) fn of(runtime: &Runtime) -> Result<Self, Refusal> {
        let name = runtime.name();
        let ask = |arguments: &[&str]| {
            runtime.ask(arguments).map_err(|error| {
                Refusal::new(
                    format!("`{name}` cannot be started: {error}"),
                    format!("{} --version", runtime.program.display()),
                )
                .about(RefusalKind::RuntimeMissing)
            })
        };
        let (help, version) = (ask(&["run", "--help"])?, ask(&["--version"])?);
        let found = Self::read(&name, &version.output, &format!("{}\n{}", help.output, help.errors));
        if found.options.is_empty() {
            return Err(Refusal::new(
                format!("`{name} run --help` names no options: it is no container runtime"),
                "set sandbox.apple.runtime_command to one, such as `container` or `podman`",
            )
            .about(RefusalKind::RuntimeMissing));
        }
        Ok(found)
    }

    /// Reads what a runtime says of itself.
    pub(crate) fn read(name: &str, version: &str, help: &str) -> Self {
        let version = version.lines().next().unwrap_or_default().trim().to_owned();
        let kind = match version.split_whitespace().next().map(str::to_lowercase).as_deref() {
            Some("docker") => Kind::Docker,
            Some("podman") => Kind::Podman,
            Some("nerdctl") => Kind::Nerdctl,
            Some("container") => Kind::Apple,
            Some(_) | None => Kind::Unknown,
        };
        Self { kind, version, options: options(help), name: name.to_owned() }
    }

    /// Whether `run` has this option, such as `--read-only`.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.contains(option)
    }

    /// Whether it counts processes. If not, the worker does, where the policy allows that.
    pub(crate) fn counts_processes(&self) -> bool {
        self.has("--pids-limit")
    }

    /// The name by which a container with a network of this runtime reaches the host, if there is one.
    pub(crate) fn host_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Docker | Kind::Nerdctl => Some(crate::container::HOST_NAME),
            // Its own, in every container: not every version takes `host-gateway` for an address.
            Kind::Podman => Some("host.containers.internal"),
            Kind::Apple | Kind::Unknown => None,
        }
    }

    /// Refuses a policy that this runtime has no option for.
    pub(crate) fn check(&self, policy: &Policy) -> Result<(), Refusal> {
        let closed = matches!(policy.network, Network::None | Network::Sealed);
        let needed = [
            ("--name", "name a container, so that it can be killed"),
            ("--interactive", "keep the worker's input open"),
            ("--entrypoint", "start our worker instead of what the image starts"),
            ("--user", "run the agent as somebody who is not root"),
            ("--read-only", "keep the image's files closed to writing"),
            ("--cap-drop", "take every capability away"),
            ("--tmpfs", "give the agent private folders in memory"),
            ("--memory", "limit memory"),
            ("--cpus", "limit processor time"),
        ];
        let network = (closed && !self.has("--network")).then_some(("--network", "keep the network away"));
        let missing = needed.into_iter().filter(|(option, _)| !self.has(option)).chain(network).next();
        if let Some((option, purpose)) = missing {
            return Err(self.lacks(option, purpose));
        }
        if !self.has("--mount") && !self.has("--volume") {
            return Err(self.lacks("--mount", "show the workspace"));
        }
        if !self.counts_processes() && policy.limits_rule == LimitsRule::Required {
            return Err(self.lacks("--pids-limit", "limit processes"));
        }
        if self.kind == Kind::Apple && !policy.limits.cpus_milli.is_multiple_of(1000) {
            return Err(Refusal::new(
                format!("`{}` gives a container whole processors only", self.name),
                "set sandbox.apple.cpus to a whole number",
            ));
        }
        Ok(())
    }

    fn lacks(&self, option: &str, purpose: &str) -> Refusal {
        Refusal::new(
            format!("`{} run` has no option `{option}`: it cannot {purpose}", self.name),
            format!(
                "update `{}`, set sandbox.apple.runtime_command to another runtime, or use --mode native",
                self.name
            ),
        )
    }
}

/// The long options that a help text lists: `-m, --memory <memory>  …`, `--read-only  …`, `--pull string  …`.
fn options(help: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in help.lines() {
        let text = line.trim_start();
        if line.len() - text.len() > DEEPEST_OPTION || !text.starts_with('-') {
            continue;
        }
        let words = text.split_whitespace().map(|word| word.trim_end_matches(','));
        let names = words.take_while(|word| word.starts_with('-')).filter(|word| word.starts_with("--"));
        let plain = |word: &str| word.split(['=', '[']).next().unwrap_or_default().to_owned();
        found.extend(names.map(plain).filter(|name| name.len() > 2));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Limits;

    const GO: &str = "Options:
      --add-host list              Add a mapping
                                   --not-an-option of this line
  -i, --interactive                Keep STDIN open
  -m, --memory bytes               Memory limit
      --cap-drop strings           Drop
      --cpus decimal               Number of CPUs
      --entrypoint string          Overwrite
      --mount mount                Attach
      --name string                Assign
      --network=network            Connect
      --pids-limit int             Tune
      --read-only                  Mount read only
      --tmpfs list                 Mount
  -u, --user string                Username
";

    const SWIFT: &str = "OVERVIEW: Run a container

USAGE: container run [<options>] <image> [<arguments> ...]

PROCESS OPTIONS:
  -i, --interactive       Keep the standard input open
  -u, --user <user>       Set the user

RESOURCE OPTIONS:
  -c, --cpus <cpus>       Number of CPUs
  -m, --memory <memory>   Amount of memory

MANAGEMENT OPTIONS:
  --entrypoint <cmd>      Override the entrypoint
  --mount <mount>         Add a mount
  --name <name>           Use the name
  --network <network>     Attach
  --read-only             Mount
  --tmpfs <tmpfs>         Add a tmpfs
";

    fn able() -> Abilities {
        Abilities::read("docker", "Docker version 28.2.2, build x\n", GO)
    }

    #[test]
    fn the_options_of_every_kind_of_help_are_read() {
        for option in ["--add-host", "--interactive", "--memory", "--read-only", "--network", "--user"] {
            assert!(able().has(option), "{option}");
        }
        assert!(!able().has("--not-an-option"), "it is in a description");
        let apple = Abilities::read("container", "container CLI version 1.0.0 (build: release)", SWIFT);
        for option in ["--interactive", "--user", "--cpus", "--memory", "--read-only", "--tmpfs", "--name"] {
            assert!(apple.has(option), "{option}");
        }
        assert_eq!(apple.options.len(), 10, "{:?}", apple.options);
    }

    #[test]
    fn a_runtime_is_told_by_its_version_and_not_by_its_name() {
        let kind = |version: &str| Abilities::read("docker", version, GO).kind;
        assert_eq!(kind("Docker version 28.2.2, build x"), Kind::Docker);
        assert_eq!(kind("podman version 4.3.1"), Kind::Podman);
        assert_eq!(kind("nerdctl version 2.0.0"), Kind::Nerdctl);
        assert_eq!(kind("container CLI version 0.5.0"), Kind::Apple);
        assert_eq!(kind("something else"), Kind::Unknown);
        assert_eq!(kind(""), Kind::Unknown);
    }

    #[test]
    fn what_the_policy_needs_and_the_runtime_lacks_is_named() {
        let policy = Policy::default();
        assert_eq!(able().check(&policy), Ok(()));
        for option in ["--read-only", "--cap-drop", "--tmpfs", "--memory", "--network", "--mount", "--name"] {
            let mut lacking = able();
            lacking.options.remove(option);
            let refusal = lacking.check(&policy).unwrap_err();
            assert!(
                refusal.problem.contains(&format!("`docker run` has no option `{option}`")),
                "{refusal:?}"
            );
            assert!(refusal.remedy.contains("sandbox.apple.runtime_command"), "{refusal:?}");
        }
    }

    #[test]
    fn only_a_policy_of_best_effort_goes_without_a_count_of_processes() {
        let mut lacking = able();
        lacking.options.remove("--pids-limit");
        let refusal = lacking.check(&Policy::default()).unwrap_err();
        assert!(refusal.problem.contains("--pids-limit"), "{refusal:?}");
        let lenient = Policy { limits_rule: LimitsRule::BestEffort, ..Policy::default() };
        assert_eq!(lacking.check(&lenient), Ok(()));
    }

    #[test]
    fn a_virtual_machine_has_whole_processors() {
        let apple = Abilities { kind: Kind::Apple, ..able() };
        let limits = Limits { cpus_milli: 1500, ..Limits::default() };
        let refusal = apple.check(&Policy { limits, ..Policy::default() }).unwrap_err();
        assert!(refusal.problem.contains("whole processors"), "{refusal:?}");
    }
}
