//! What of the host every sandbox shows: the system's programs, and the caller's toolchains.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cofferdam_core::{Network, inside};

use super::cover::covers;
use super::plan::{Access, Entry};
use crate::options::Caller;

const SYSTEM_FOLDERS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"];

/// Configuration that programs need and that holds no secret. Not `/etc/gitconfig` or `/etc/npmrc`, which
/// may hold tokens, and not `/etc/ssh`.
const ETC: &[&str] = &[
    "alternatives",
    "bash.bashrc",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gnutls",
    "host.conf",
    "inputrc",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "locale.conf",
    "lsb-release",
    "mime.types",
    "os-release",
    "perl",
    "php",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/certs",
    "pki/tls/cert.pem",
    "profile",
    "profile.d",
    "protocols",
    "python3",
    "redhat-release",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xdg",
];

/// Device nodes that every program expects. None of them reaches a device.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Toolchains below the caller's home, by the folders that hold programs and libraries. Whatever may hold
/// a token (`.cargo/credentials.toml`, `.npmrc`, `.config`) is not below any of them.
const TOOLCHAINS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".bun/install/global",
    ".cargo/bin",
    ".cargo/env",
    ".cargo/git/db",
    ".cargo/registry",
    ".deno/bin",
    ".dotnet/host",
    ".dotnet/sdk",
    ".dotnet/shared",
    ".dotnet/dotnet",
    ".fnm",
    ".ghcup/bin",
    ".ghcup/ghc",
    ".go",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".npm-global/bin",
    ".npm-global/lib",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta/bin",
    ".volta/tools",
    ".yarn/bin",
    "go/bin",
    "go/pkg",
    "sdk",
];

/// Files in toolchains in which tokens of package registries are kept. A star stands for one name.
const CREDENTIALS: &[&str] = &[
    ".asdf/installs/nodejs/*/etc/npmrc",
    ".fnm/node-versions/*/installation/etc/npmrc",
    ".local/share/fnm/node-versions/*/installation/etc/npmrc",
    ".local/share/mise/installs/node/*/etc/npmrc",
    ".nvm/versions/node/*/etc/npmrc",
    ".pyenv/versions/*/pip.conf",
    ".volta/tools/image/node/*/etc/npmrc",
    ".asdf/installs/python/*/pip.conf",
    ".local/share/mise/installs/python/*/pip.conf",
    ".local/share/pipx/venvs/*/pip.conf",
];

/// Variables that lead a toolchain to its folder, since the home inside is another one.
const TOOLCHAIN_VARIABLES: &[(&str, &str)] =
    &[("RUSTUP_HOME", ".rustup"), ("NVM_DIR", ".nvm"), ("PYENV_ROOT", ".pyenv"), ("RBENV_ROOT", ".rbenv")];

/// Where the kernel tells of its memory, its timers, its hardware and the keys that users have. No agent needs them, and container
/// engines hide the same.
const KERNEL_FACTS: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
];

/// Covers what a kernel of this machine has of them; the sandbox has the same kernel.
pub(crate) fn kernel_facts() -> impl Iterator<Item = Entry> {
    KERNEL_FACTS.iter().map(PathBuf::from).filter_map(|path| {
        let found = path.symlink_metadata().ok()?;
        if found.is_dir() {
            return Some(Entry::Empty { path });
        }
        let (source, access) = (PathBuf::from("/dev/null"), Access::ReadOnly);
        Some(Entry::Bind { source, target: path, access, owner: None })
    })
}

/// The entries that every sandbox has. The caller's home is covered where it would be shown.
pub(crate) fn entries(caller: &Caller, network: Network) -> Vec<Entry> {
    let mut entries = Vec::new();
    for folder in SYSTEM_FOLDERS.iter().map(Path::new) {
        // On most systems `/bin` is a link to `usr/bin`, and is one inside too.
        match (fs::read_link(folder), folder.is_dir()) {
            (Ok(target), _) => entries.push(Entry::Link { path: folder.to_owned(), target }),
            (Err(_), true) => entries.push(read_only(folder)),
            (Err(_), false) => {}
        }
    }
    for name in ETC.iter().chain(if network == Network::Open { &["resolv.conf"][..] } else { &[] }) {
        entries.extend(existing(&Path::new("/etc").join(name)));
    }
    entries.extend(files(network));
    for device in DEVICES {
        let path = Path::new("/dev").join(device);
        entries.push(Entry::Bind {
            source: path.clone(),
            target: path,
            access: Access::ReadWrite,
            owner: None,
        });
    }
    // Before the toolchains, which are shown all the same.
    if let Some(home) = &caller.home {
        entries.extend(covers(&entries, home));
    }
    for folder in toolchains(caller) {
        entries.extend(existing(&folder));
    }
    for file in credentials(caller) {
        let (source, access) = (PathBuf::from("/dev/null"), Access::ReadOnly);
        entries.push(Entry::Bind { source, target: file, access, owner: None });
    }
    entries.push(Entry::Devices);
    entries
}

fn read_only(path: &Path) -> Entry {
    Entry::Bind { source: path.to_owned(), target: path.to_owned(), access: Access::ReadOnly, owner: None }
}

/// A path of the host, as what it points to: a link inside could lead to something that is not there.
fn existing(path: &Path) -> Option<Entry> {
    let source = path.canonicalize().ok()?;
    Some(Entry::Bind { source, target: path.to_owned(), access: Access::ReadOnly, owner: None })
}

fn toolchains(caller: &Caller) -> Vec<PathBuf> {
    let Some(home) = &caller.home else { return Vec::new() };
    TOOLCHAINS
        .iter()
        .map(|name| home.join(name))
        // A toolchain folder that is a link could be made to show any folder of the host.
        .filter(|path| path.symlink_metadata().is_ok_and(|found| !found.is_symlink()))
        .collect()
}

/// Every file of [`CREDENTIALS`] that is shown with its toolchain.
fn credentials(caller: &Caller) -> Vec<PathBuf> {
    let Some(home) = &caller.home else { return Vec::new() };
    let toolchains = toolchains(caller);
    let mut found = Vec::new();
    for pattern in CREDENTIALS {
        let Some((before, after)) = pattern.split_once("/*/") else { continue };
        for entry in fs::read_dir(home.join(before)).into_iter().flatten().flatten() {
            let file = entry.path().join(after);
            // Versions of node are often links to each other; what a link leads to is covered at its own path.
            let real = file.canonicalize().is_ok_and(|real| real == file);
            if real && toolchains.iter().any(|toolchain| file.starts_with(toolchain)) {
                found.push(file);
            }
        }
    }
    found
}

/// Files of our own, where the host's would name its people and its network.
fn files(network: Network) -> Vec<Entry> {
    let id = inside::UID;
    let (user, home) = (inside::USER, inside::HOME);
    let file = |path: &str, content: String| Entry::File { path: path.into(), content };
    let mut files = vec![
        file(
            "/etc/passwd",
            format!(
                "root:x:0:0:root:/root:/usr/sbin/nologin\n{user}:x:{id}:{id}:{user}:{home}:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        file("/etc/group", format!("root:x:0:\n{user}:x:{id}:\nnogroup:x:65534:\n")),
        file("/etc/hosts", "127.0.0.1 localhost cofferdam\n::1 localhost cofferdam\n".to_owned()),
        file("/etc/hostname", "cofferdam\n".to_owned()),
        file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
    ];
    if network.is_closed() {
        files.push(file("/etc/resolv.conf", String::new()));
    }
    files
}

/// The agent's variables: the caller's language and time zone, and a PATH of what is visible inside.
pub(crate) fn environment(caller: &Caller) -> BTreeMap<String, String> {
    let mut env = caller.locale.clone();
    let set = [
        ("HOME", inside::HOME),
        ("USER", inside::USER),
        ("LOGNAME", inside::USER),
        ("SHELL", "/bin/sh"),
        ("TMPDIR", inside::TMP),
        ("PWD", inside::WORKSPACE),
    ];
    env.extend(set.map(|(name, value)| (name.to_owned(), value.to_owned())));
    env.insert("PATH".to_owned(), path_inside(caller));
    if let Some(home) = &caller.home {
        for (variable, folder) in TOOLCHAIN_VARIABLES {
            let folder = home.join(folder);
            if folder.is_dir() {
                env.insert((*variable).to_owned(), folder.display().to_string());
            }
        }
    }
    env
}

fn path_inside(caller: &Caller) -> String {
    let toolchains = toolchains(caller);
    let visible = |folder: &PathBuf| {
        SYSTEM_FOLDERS.iter().any(|system| folder.starts_with(system))
            || toolchains.iter().any(|toolchain| folder.starts_with(toolchain))
    };
    let mut path: Vec<String> = Vec::new();
    let defaults = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    for folder in caller.path.iter().filter(|folder| visible(folder)).chain(&defaults) {
        // A folder whose name is not text, or holds a colon, cannot be written into a PATH.
        let Some(text) = folder.to_str().filter(|text| !text.contains(':')) else { continue };
        if !path.iter().any(|known| known == text) {
            path.push(text.to_owned());
        }
    }
    path.join(":")
}

/// What makes a scope: by its path, since a PATH may lead into a repository.
pub(super) const SYSTEMD_RUN: &str = "/usr/bin/systemd-run";

/// Whether the caller has a systemd of their own that can make a scope with limits.
pub(crate) fn user_systemd() -> bool {
    let id = rustix::process::geteuid();
    let socket = PathBuf::from(format!("/run/user/{}/systemd/private", id.as_raw()));
    !id.is_root() && socket.exists() && Path::new(SYSTEMD_RUN).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_shown_and_its_credentials_are_not() {
        let home = tempfile::tempdir().unwrap();
        let node = ".nvm/versions/node/v22/etc";
        for folder in [".cargo/bin", ".rustup", ".ssh", ".local/share/uv/credentials", node] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        fs::write(home.path().join(".cargo/credentials.toml"), "token").unwrap();
        fs::write(home.path().join(node).join("npmrc"), "token").unwrap();
        std::os::unix::fs::symlink(home.path().join(".ssh"), home.path().join(".pyenv")).unwrap();
        let caller = Caller {
            home: Some(home.path().to_owned()),
            path: vec![home.path().join(".cargo/bin"), home.path().join("bin"), "/usr/bin".into()],
            ..Caller::default()
        };
        let shown: Vec<PathBuf> = entries(&caller, Network::None)
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Bind { target, .. } if target.starts_with(home.path()) => Some(target),
                _ => None,
            })
            .collect();
        let npmrc = format!("{node}/npmrc");
        let expected = [".cargo/bin", ".nvm", ".rustup", &npmrc].map(|name| home.path().join(name));
        assert_eq!(shown, expected);
        let null = entries(&caller, Network::None).into_iter().any(
            |entry| matches!(entry, Entry::Bind { source, target, .. } if target == expected[3] && source == Path::new("/dev/null")),
        );
        assert!(null, "the token is covered");
        let env = environment(&caller);
        let cargo = home.path().join(".cargo/bin").display().to_string();
        assert_eq!(env["PATH"], format!("{cargo}:/usr/bin:/usr/local/bin:/bin"));
        assert_eq!(env["HOME"], inside::HOME);
    }
}
