//! One package, in the three forms that npm, pip and cargo fetch.

use std::fs;
use std::path::Path;
use std::process::Command;

use cofferdam_local_servers::Files;
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::Outside;

const NAME: &str = "left-hand";
const VERSION: &str = "1.2.3";

/// A server with the package `left-hand`, whose greeting is [`Registry::GREETING`].
pub struct Registry {
    files: Files,
}

impl Registry {
    /// Its name.
    pub const HOST: &str = "registry.test";
    /// What the package says once it is installed.
    pub const GREETING: &str = "hello from the left hand";

    /// Starts it at a name that leads to the loopback.
    ///
    /// # Panics
    /// If the packages cannot be made.
    pub async fn start(outside: &Outside) -> Self {
        let files = Files::start(&outside.authority, &[Self::HOST]).await;
        outside.names.set(Self::HOST, &["127.0.0.1"]);
        let registry = Self { files };
        let folder = tempfile::tempdir().expect("a temp folder");
        registry.put_npm(&folder);
        registry.put_wheel(&folder);
        registry.put_crate(&folder);
        registry
    }

    /// `registry.test:PORT`.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("{}:{}", Self::HOST, self.files.address().port())
    }

    /// `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> String {
        self.files.address().to_string()
    }

    /// The paths that were asked for.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.files.asked()
    }

    fn put_npm(&self, folder: &TempDir) {
        let package = json!({ "name": NAME, "version": VERSION, "main": "index.js" });
        write(folder, "package/package.json", &package.to_string());
        write(folder, "package/index.js", &format!("module.exports = '{}';\n", Self::GREETING));
        let tarball = tar(folder, "package");
        let at = format!("/npm/{NAME}/-/{NAME}-{VERSION}.tgz");
        let mut of_version = package;
        of_version["dist"] = json!({ "tarball": format!("https://{}{at}", self.authority()) });
        let about =
            json!({ "name": NAME, "dist-tags": { "latest": VERSION }, "versions": { VERSION: of_version } });
        self.files.put(&format!("/npm/{NAME}"), "application/json", about.to_string());
        self.files.put(&at, "application/octet-stream", tarball);
    }

    fn put_wheel(&self, folder: &TempDir) {
        let about = format!("left_hand-{VERSION}.dist-info");
        write(folder, "left_hand.py", &format!("GREETING = '{}'\n", Self::GREETING));
        let metadata = format!("Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n");
        write(folder, &format!("{about}/METADATA"), &metadata);
        let wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        write(folder, &format!("{about}/WHEEL"), wheel);
        let record = format!("left_hand.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n");
        write(folder, &format!("{about}/RECORD"), &record);
        let name = format!("left_hand-{VERSION}-py3-none-any.whl");
        let zip = ["-m", "zipfile", "-c", &name, "left_hand.py", &about];
        run(Command::new("python3").args(zip), folder.path());
        let page = format!("<!DOCTYPE html><html><body><a href=\"/files/{name}\">{name}</a></body></html>");
        self.files.put(&format!("/simple/{NAME}/"), "text/html", page);
        let content = fs::read(folder.path().join(&name)).expect("the wheel");
        self.files.put(&format!("/files/{name}"), "application/octet-stream", content);
    }

    fn put_crate(&self, folder: &TempDir) {
        let root = format!("{NAME}-{VERSION}");
        let manifest = format!("[package]\nname = \"{NAME}\"\nversion = \"{VERSION}\"\nedition = \"2021\"\n");
        write(folder, &format!("{root}/Cargo.toml"), &manifest);
        let source = format!("pub const GREETING: &str = \"{}\";\n", Self::GREETING);
        write(folder, &format!("{root}/src/lib.rs"), &source);
        let packed = tar(folder, &root);
        let digest: String = Sha256::digest(&packed).iter().map(|byte| format!("{byte:02x}")).collect();
        let line = json!({
            "name": NAME, "vers": VERSION, "deps": [], "cksum": digest, "features": {}, "yanked": false,
        });
        let download = format!("https://{}/cargo/crates/{{crate}}/{{version}}.crate", self.authority());
        self.files.put("/cargo/config.json", "application/json", json!({ "dl": download }).to_string());
        self.files.put(&format!("/cargo/le/ft/{NAME}"), "text/plain", format!("{line}\n"));
        let at = format!("/cargo/crates/{NAME}/{VERSION}.crate");
        self.files.put(&at, "application/octet-stream", packed);
    }
}

fn write(folder: &TempDir, name: &str, content: &str) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
    fs::write(path, content).expect("a new file");
}

fn tar(folder: &TempDir, name: &str) -> Vec<u8> {
    run(Command::new("tar").args(["czf", "packed.tgz", name]), folder.path());
    fs::read(folder.path().join("packed.tgz")).expect("the archive")
}

fn run(command: &mut Command, folder: &Path) {
    let output = command.current_dir(folder).output().expect("the program is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
