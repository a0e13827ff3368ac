//! Every key with values that it takes and values that it refuses.

use serde_json::{Value, json};

/// A key, what it takes, and what it refuses with a part of what is said.
pub(super) struct Row {
    pub(super) keys: Vec<&'static str>,
    pub(super) good: Vec<Value>,
    pub(super) bad: Vec<(Value, &'static str)>,
}

/// A tree with one value, and what has to stand beside it.
pub(super) fn tree(keys: &[&str], value: &Value) -> Value {
    let leaf = keys.iter().rev().fold(value.clone(), |value, key| json!({ *key: value }));
    match keys {
        ["agents", name, key] if *key != "provider" => {
            let mut leaf = leaf;
            leaf["agents"][*name]["provider"] = json!("codex");
            leaf
        }
        ["sandbox", "forwards", name, key] => {
            let mut leaf = leaf;
            for (needed, value) in [("port", json!(5432)), ("target", json!("127.0.0.1:5432"))] {
                if needed != *key {
                    leaf["sandbox"]["forwards"][*name][needed] = value;
                }
            }
            leaf
        }
        ["prices", "models", name, key] => {
            let mut leaf = leaf;
            for needed in ["input", "output"] {
                if needed != *key {
                    leaf["prices"]["models"][*name][needed] = json!(1);
                }
            }
            leaf
        }
        _ => leaf,
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |path: &'static str, good: Value, bad: &[(Value, &'static str)]| {
        let keys: Vec<&str> = path.split('.').collect();
        let good = good.as_array().expect("a list of values").clone();
        rows.push(Row { keys, good, bad: bad.to_vec() });
    };
    let mode = || (json!("vm"), "`vm` is not known; type one of `native`, `docker`, `apple`, `host`");
    let network = || (json!("closed"), "`closed` is not known; type one of `sealed`, `none`, `open`");
    let size = || (json!("2q"), "`2q` is not a size; type a size such as `512m`");
    let small = || (json!(1), "`1` is less than");
    let cpus = || (json!("0"), "`0` is not between 0.01 and 1024 processors; type a number");
    let pids = || (json!(0), "`0` is not a whole number between 1 and 4194304; type a number");
    let variables = || (json!(["A B"]), "`A B` is not the name of a variable; type letters");
    let pattern = || (json!(["[a"]), "`[a` is not a pattern");
    let text = || (json!(7), "type a text");
    let image = || (json!("openTiger/worker:latest"), "type `opentiger/worker:latest`");
    let price = || (json!(-1), "`-1` is not a price; type US dollars");

    row("$schema", json!(["./settings.schema.json"]), &[text()]);
    row(
        "sandbox.mode",
        json!(["native", "docker", "apple", "host"]),
        &[mode(), (json!(7), "`7` is not known; type one of")],
    );
    row(
        "sandbox.timeout_seconds",
        json!([1, 600, "90", 604_800]),
        &[
            (json!(0), "`0` is not a whole number between 1 and 604800"),
            (json!("10m"), "`10m` is not a whole"),
        ],
    );
    row(
        "sandbox.max_attempts",
        json!([1, 3, 100]),
        &[
            (json!(0), "between 1 and 100"),
            (json!(101), "between 1 and 100"),
            (json!(1.5), "`1.5` is not a whole"),
        ],
    );
    row(
        "sandbox.max_concurrency",
        json!([0, 2, 10_000]),
        &[(json!(-1), "between 0 and 10000"), (json!(true), "type a text such as")],
    );
    row(
        "sandbox.env_allowlist",
        json!([[], ["ANTHROPIC_API_KEY", "_x"]]),
        &[
            variables(),
            (json!(["A=hunter2"]), "`A` is not the name of a variable"),
            (json!("A"), "type a list"),
        ],
    );
    row(
        "sandbox.path_mapping_mode",
        json!(["mapped", "same-path"]),
        &[(json!("same_path"), "`same_path` is not known; type one of `mapped`, `same-path`")],
    );
    row("sandbox.network", json!(["sealed", "open", "none"]), &[network()]);
    row("sandbox.limits.memory", json!(["512m", "8g", 67_108_864]), &[size(), small()]);
    row("sandbox.limits.cpus", json!(["0.5", 2, 0.25]), &[cpus()]);
    row("sandbox.limits.pids", json!([64, "9", 1024]), &[pids()]);
    row("sandbox.limits.open_files", json!([256, 65_536]), &[(json!(3), "between 16 and 1048576")]);
    row("sandbox.limits.output", json!(["1m", "1g"]), &[size(), small()]);
    row("sandbox.limits.disk", json!(["500m", "50g"]), &[size(), small()]);
    row("sandbox.mask.hide", json!([[], ["secrets/**", "*.p12"], ["*.jks"]]), &[pattern()]);
    row("sandbox.mask.show", json!([[], [".env.test"], [".env.test", "*.pem"]]), &[pattern()]);
    row("sandbox.rewrite_loopback", json!(["all", [], ["API_URL"]]), &[(json!("some"), "type \"all\"")]);
    row(
        "sandbox.forwards.db.port",
        json!([5432, "6379", 65_535]),
        &[
            (json!(80), "between 1024 and 65535"),
            (json!(3128), "`3128` is the broker's own port; type another"),
        ],
    );
    row(
        "sandbox.forwards.db.target",
        json!(["127.0.0.1:5432", "db.example:5432", "[::1]:5432"]),
        &[(json!("db.example"), "db.example")],
    );
    row("sandbox.forwards.db.always", json!([true, false]), &[(json!("yes"), "")]);
    row(
        "sandbox.native.storage",
        json!(["disk", "memory"]),
        &[(json!("ram"), "`ram` is not known; type one of `disk`, `memory`")],
    );
    row("sandbox.docker.image", json!(["ghcr.io/a/b:1", "tinyclaw/agent-runner:latest"]), &[image()]);
    row("sandbox.docker.network", json!(["default", "agents"]), &[(json!("host"), "type `bridge`")]);
    row("sandbox.docker.memory", json!(["256m", "4g"]), &[size()]);
    row("sandbox.docker.cpus", json!(["1.0", 4]), &[cpus()]);
    row("sandbox.docker.pids_limit", json!([32, 512]), &[pids()]);
    row("sandbox.docker.runtime", json!(["runsc"]), &[(json!("run sc"), "is not the name of a runtime")]);
    row(
        "sandbox.docker.host",
        json!(["unix:///run/docker.sock"]),
        &[(json!("docker.sock"), "is not the address of an engine; type an address")],
    );
    row(
        "sandbox.apple.runtime_command",
        json!(["apple-container", "/usr/bin/podman"]),
        &[(json!("podman run"), "has a space in it"), (json!("./x"), "is not an absolute path")],
    );
    row("sandbox.apple.image", json!(["localhost/x"]), &[(json!("-x"), "type a name such as")]);
    row("sandbox.apple.network", json!(["default"]), &[(json!("container:x"), "type `bridge`")]);
    row("sandbox.apple.memory", json!(["1g"]), &[size()]);
    row("sandbox.apple.cpus", json!([2]), &[cpus()]);
    row("sandbox.apple.pids_limit", json!([16]), &[pids()]);
    row("sandbox.policies.strict.mode", json!(["docker"]), &[mode()]);
    row("sandbox.policies.strict.network", json!(["none"]), &[network()]);
    row(
        "sandbox.policies.strict.allow",
        json!([[], ["npm", "a.example:443", "*.example.com:443"]]),
        &[(json!(["a.example"]), "`a.example` names no port"), (json!(["a b"]), "type HOST:PORT")],
    );
    row("sandbox.policies.strict.limits.memory", json!(["1g"]), &[size()]);
    row("sandbox.policies.strict.limits.cpus", json!([1]), &[cpus()]);
    row("sandbox.policies.strict.limits.pids", json!([8]), &[pids()]);
    row("sandbox.policies.strict.limits.open_files", json!([64]), &[(json!("x"), "is not a whole number")]);
    row("sandbox.policies.strict.limits.output", json!(["1m"]), &[size()]);
    row("sandbox.policies.strict.limits.disk", json!(["1g"]), &[size()]);
    row("sandbox.policies.strict.timeout_seconds", json!([60]), &[(json!("soon"), "is not a whole number")]);
    row("sandbox.policies.strict.max_attempts", json!([2]), &[(json!(0), "between 1 and 100")]);
    row("sandbox.policies.strict.env_allowlist", json!([["LANG"]]), &[variables()]);
    row("sandbox.policies.strict.mask.hide", json!([["*.p12"]]), &[pattern()]);
    row("sandbox.policies.strict.mask.show", json!([["*.pem"]]), &[pattern()]);
    row(
        "egress.sets.corp",
        json!([[], ["npm.corp.example:443", "10.1.2.3:443"]]),
        &[(json!(["a.example"]), "`a.example` names no port")],
    );
    row("egress.sets.npm", json!([["registry.npmjs.org:443"]]), &[(json!("x"), "type a list")]);
    row("egress.name_servers", json!([["10.0.0.53:53"]]), &[(json!(["10.0.0.53"]), "")]);
    row(
        "git.credentials",
        json!([
            [],
            [{"host": "git.example", "token_env": "ACME_TOKEN"}],
            [{"host": "git.example:8443", "path": "team/app", "token_env": "GITHUB_TOKEN"}],
        ]),
        &[
            (json!("ACME_TOKEN"), "type a list"),
            (json!([["git.example", "team", "ACME_TOKEN"]]), "this is a list; type an object"),
        ],
    );
    let database = || (json!("mysql://a/b"), "is not the address of a PostgreSQL database; type an address");
    row(
        "store.url",
        json!(["postgres://me@db.example/cofferdam", "postgresql:///x?host=/run/pg"]),
        &[database()],
    );
    row("store.listen_url", json!(["postgres://me@db.example:5432/cofferdam"]), &[database()]);
    row(
        "store.pooler",
        json!(["none", "transaction"]),
        &[(json!("session"), "type one of `none`, `transaction`")],
    );
    row("store.max_connections", json!([1, 10, 1_000]), &[(json!(0), "between 1 and 1000")]);
    row(
        "artifacts.url",
        json!(["s3://artifacts", "s3://artifacts/a/b"]),
        &[(json!("/srv"), "type a bucket")],
    );
    row(
        "artifacts.endpoint",
        json!(["https://storage.example"]),
        &[(json!("storage"), "type an address such as")],
    );
    row("artifacts.region", json!(["eu-central-1"]), &[(json!("EU"), "is not a region; type one such as")]);
    for key in [
        "retention.runs_days",
        "retention.events_days",
        "retention.artifacts_days",
        "retention.checkouts_days",
        "retention.audit_days",
    ] {
        row(
            key,
            json!([0, 30, "90", "forever"]),
            &[(json!(-1), "between 0 and 36525"), (json!("always"), "or `forever`")],
        );
    }
    for key in ["retention.artifacts_size", "retention.checkouts_size"] {
        row(key, json!(["20g", 1_048_576, "unlimited"]), &[size(), (json!("all"), "or `unlimited`")]);
    }
    row(
        "models.aliases.my-model",
        json!(["claude-sonnet-5"]),
        &[(json!("-x"), "`-x` is not the name of a model; type at most 200 characters"), (json!(""), "")],
    );
    row(
        "tools.web_fetch.allow",
        json!([[], ["docs.rs:443", "*.python.org:443", "127.0.0.1:8080"]]),
        &[(json!(["docs.rs"]), "names no port; write `docs.rs:443`")],
    );
    row(
        "tools.web_search",
        json!(["vendor", "off", "https://searx.example/search"]),
        &[(json!("on"), "`on` is not known; type `vendor`")],
    );
    for [seconds, turns] in [
        ["specs.phases.explore.seconds", "specs.phases.explore.max_turns"],
        ["specs.phases.prd.seconds", "specs.phases.prd.max_turns"],
        ["specs.phases.requirements.seconds", "specs.phases.requirements.max_turns"],
        ["specs.phases.design.seconds", "specs.phases.design.max_turns"],
        ["specs.phases.tasks.seconds", "specs.phases.tasks.max_turns"],
        ["specs.phases.sync.seconds", "specs.phases.sync.max_turns"],
        ["specs.phases.implement.seconds", "specs.phases.implement.max_turns"],
    ] {
        row(seconds, json!([1, "300"]), &[(json!(0), "`0` is not a whole number between 1 and 604800")]);
        row(turns, json!([1, 25]), &[(json!(0), "`0` is not a whole number between 1 and 10000")]);
    }
    row("specs.max_seconds", json!([1, 3_600]), &[(json!(0), "between 1 and 604800")]);
    row(
        "specs.approvals_by",
        json!(["owner", "system"]),
        &[(json!("me"), "`me` is not known; type one of `owner`, `system`")],
    );
    row("prices.as_of", json!(["2026-10-01"]), &[text()]);
    row("prices.models.my-model.input", json!([1.0, 0]), &[price()]);
    row("prices.models.my-model.output", json!([4]), &[price(), (json!("4"), "type ")]);
    row("prices.models.my-model.cache_read", json!([0.1]), &[price()]);
    row("prices.models.my-model.cache_write", json!([1.25]), &[price()]);
    row("agents.coder.name", json!(["Coder"]), &[text()]);
    row(
        "agents.coder.provider",
        json!(["openai", "anthropic", "claude_code", "opencode"]),
        &[(json!("gemini"), "`gemini` is not a provider; type `claude_code`")],
    );
    row("agents.coder.model", json!(["gpt-5.3-codex"]), &[text()]);
    row(
        "agents.coder.working_directory",
        json!(["/Users/me/tinyclaw-workspace/coder"]),
        &[(json!(7), "type ")],
    );
    row("agents.coder.sandbox_mode", json!(["docker"]), &[mode()]);
    row("agents.coder.policy", json!(["strict"]), &[(json!("../x"), "is not the name of a policy; type")]);
    row("agents.coder.system_prompt", json!(["Be brief."]), &[text()]);
    row("agents.coder.max_concurrency", json!([0, 1]), &[(json!(-1), "between 0 and 10000")]);
    row("service.listen", json!(["127.0.0.1:8787", "[::]:80"]), &[(json!("localhost"), "")]);
    row(
        "service.public_url",
        json!(["https://cofferdam.example"]),
        &[(json!("cofferdam.example"), "is not an address of the API; type an address")],
    );
    row(
        "service.allowed_hosts",
        json!([[], ["cofferdam.example"]]),
        &[(json!(["*"]), "type a name such as")],
    );
    row(
        "service.cors_origins",
        json!([[], ["https://a.example"]]),
        &[(json!(["*"]), "type scheme and host")],
    );
    row("service.capacity", json!([1, 8]), &[(json!(0), "between 1 and 10000")]);
    row("service.direct_capacity", json!([1, 200]), &[(json!(0), "between 1 and 10000")]);
    row("service.max_concurrency_per_project", json!([0, 2]), &[(json!(-1), "between 0 and 10000")]);
    row("service.max_concurrency_per_agent", json!([0, 2]), &[(json!(-1), "between 0 and 10000")]);
    row(
        "service.allowed_modes",
        json!([[], ["native", "docker:open"], ["host:open"]]),
        &[(json!(["host"]), "type a mode such as"), (json!("docker"), "type a list")],
    );
    row("service.allowed_roots", json!([[], ["/srv/repos"]]), &[(json!(["repos"]), "type a folder such as")]);
    row(
        "service.allowed_repos",
        json!([[], ["https://github.com/acme/*"]]),
        &[(json!(["https://*.example/x"]), "has a pattern in the name of its host")],
    );
    row(
        "service.allowed_forwards",
        json!([[], ["db", "cache"]]),
        &[(json!(["a b"]), "`a b` is not the name of a service; type letters")],
    );
    row(
        "service.allowed_push.https://git/acme/*",
        json!([[], ["agents/*", "docs"]]),
        &[
            (json!(["refs/heads/*"]), "is not a pattern of branches; type a branch"),
            (json!("x"), "type a list"),
        ],
    );
    row(
        "service.visibility",
        json!(["all", "own"]),
        &[(json!("mine"), "`mine` is not known; type one of `all`, `own`")],
    );
    row(
        "service.default_agent",
        json!(["claude_code", "codex", "opencode"]),
        &[(json!("gemini"), "`gemini` is not a provider; type `claude_code`")],
    );
    row("service.max_execution_time_ms", json!([1, 300_000]), &[(json!(0), "is not a whole number")]);
    row("service.drain_seconds", json!([0, 30]), &[(json!(86_401), "between 0 and 86400")]);
    for keys in [
        ["roles.worker.agent", "roles.worker.append_system_prompt"],
        ["roles.tester.agent", "roles.tester.append_system_prompt"],
        ["roles.docser.agent", "roles.docser.append_system_prompt"],
    ] {
        row(keys[0], json!(["coder"]), &[(json!("a b"), "is not the name of an agent; type letters")]);
        row(keys[1], json!(["Write tests."]), &[text()]);
    }
    rows
}
