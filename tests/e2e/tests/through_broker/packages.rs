//! Package managers as people use them: https, a name, and nothing set but the registry.

use cofferdam_e2e::{Finished, Fixture, Outside, Registry, installed};
use cofferdam_test_marks::once;
use serde_json::Value;

/// A fixture, a registry outside, and a script that installs the package and lets it speak.
struct Shop {
    fixture: Fixture,
    registry: Registry,
    _outside: Outside,
    /// More flags of each run.
    flags: Vec<String>,
}

impl Shop {
    async fn open() -> Self {
        let fixture = Fixture::new();
        let outside = Outside::around(&fixture).await;
        let registry = Registry::start(&outside).await;
        fixture.write("authority.crt", outside.authority.pem());
        Self { fixture, registry, _outside: outside, flags: Vec::new() }
    }

    fn buy(&self, allow: &[&str], script: &str) -> Finished {
        let flags: Vec<&str> = allow.iter().flat_map(|rule| ["--allow", rule]).collect();
        let more: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let flags = [["--network", "sealed"].as_slice(), &more, &flags].concat();
        self.fixture.run(&flags, &script.replace("REGISTRY", &self.registry.authority()))
    }

    /// The package arrives if the registry is allowed. If it is not, the run says what was refused and what to
    /// type, the tool ends by itself, and nothing is asked of the registry.
    fn check(&self, script: &str) -> Finished {
        let (name, address) = (self.registry.authority(), self.registry.address());
        let refused = self.buy(&[], script);
        assert_eq!(refused.outcome(), "failed/agent", "{}", refused.stderr);
        assert!(self.registry.asked().is_empty(), "{:?}", self.registry.asked());
        assert!(refused.stderr.contains(&format!("it was refused: {name}")), "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("--allow {name}")), "{}", refused.stderr);
        let told = self.refusal(&refused);
        assert_eq!(told["reason"], format!("{name} is not on this run's allow-list"));
        let hint = told["hint"].as_str().unwrap_or_default();
        assert!(hint.starts_with(&format!("add --allow {name}")), "{told}");

        let bought = self.buy(&[&name, &address], script);
        assert_eq!(bought.outcome(), "succeeded", "{}", bought.stderr);
        let printed = self.fixture.printed(&bought.run_id());
        assert_eq!(printed.last().map(String::as_str), Some(Registry::GREETING), "{printed:?}");
        refused
    }

    fn refusal(&self, run: &Finished) -> Value {
        let events = self.fixture.events(&run.run_id());
        let refused = events.iter().find(|event| event["type"] == "egress.refused");
        refused.unwrap_or_else(|| panic!("nothing was refused: {}", run.stderr))["data"].clone()
    }

    /// Everything that the program said.
    fn said(&self, run: &Finished) -> String {
        let events = self.fixture.events(&run.run_id());
        let texts = events.iter().filter_map(|event| event["data"]["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}

const NPM: &str = "npm install --no-audit --no-fund --cafile authority.crt \
    --registry https://REGISTRY/npm/ left-hand && node -p 'require(\"left-hand\")'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn npm_installs_from_an_allowed_registry_alone() {
    if !installed("npm") {
        return;
    }
    let shop = Shop::open().await;
    shop.fixture.write("package.json", r#"{ "name": "shop", "version": "1.0.0", "private": true }"#);
    let refused = shop.check(NPM);
    let said = shop.said(&refused);
    assert!(said.contains("is not on this run's allow-list; add --allow"), "{said}");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pip_installs_from_an_allowed_index_alone() {
    if !installed("pip3") {
        return;
    }
    let shop = Shop::open().await;
    let refused = shop.check(
        "python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --target lib \
         --cert authority.crt --index-url https://REGISTRY/simple/ left-hand && \
         PYTHONPATH=lib python3 -c 'import left_hand; print(left_hand.GREETING)'",
    );
    let said = shop.said(&refused);
    assert!(said.contains("is not on this run's allow-list; add --allow"), "{said}");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cargo_builds_with_a_crate_of_an_allowed_registry_alone() {
    if !installed("cargo") {
        return;
    }
    let mut shop = Shop::open().await;
    // The toolchain itself, wherever it is: the home of this run is not that of Rust's owner.
    let rust = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc");
    let rust = String::from_utf8(rust.stdout).expect("a plain path").trim().to_owned();
    shop.flags = vec!["--mount".to_owned(), rust.clone()];
    let manifest = "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\nleft-hand = { version = \"1\", registry = \"ours\" }\n";
    shop.fixture.write("Cargo.toml", manifest);
    shop.fixture.write("src/main.rs", "fn main() { println!(\"{}\", left_hand::GREETING); }\n");
    shop.check(&format!(
        "export PATH={rust}/bin:$PATH CARGO_HTTP_CAINFO=$PWD/authority.crt \
         CARGO_REGISTRIES_OURS_INDEX=sparse+https://REGISTRY/cargo/ \
         && cargo build --quiet && target/debug/shop"
    ));
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_to_this_machine_is_refused_with_the_address_to_allow() {
    if !installed("npm") {
        return;
    }
    let shop = Shop::open().await;
    let (name, address) = (shop.registry.authority(), shop.registry.address());
    let run = shop.buy(&[&name], NPM);
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(shop.registry.asked().is_empty());
    let told = shop.refusal(&run);
    assert_eq!(told["reason"], format!("{name} is at {address}, which is not a public address"));
    assert!(told["hint"].as_str().unwrap().starts_with(&format!("add --allow {address}")), "{told}");
    let said = shop.said(&run);
    assert!(said.contains("which is not a public address; add --allow 127.0.0.1:"), "{said}");
}
