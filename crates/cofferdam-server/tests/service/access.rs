//! Who gets in, from where, and what for.

use cofferdam_core::{Actor, KeyId, Scope};
use cofferdam_server::KeyRule;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fixture::{Place, Setup, answer, http, repository};

#[tokio::test]
async fn without_a_key_or_with_a_wrong_one_nobody_gets_in() {
    let place = Place::start().await;
    let made_up = format!("cof_{}", "A".repeat(43));
    for key in [None, Some("nonsense"), Some(made_up.as_str())] {
        for (method, path) in [("GET", "/api/v1/runs"), ("POST", "/execute"), ("GET", "/metrics")] {
            let request = http().request(method.parse().unwrap(), place.url(path));
            let request = key.into_iter().fold(request, |request, key| request.header("x-api-key", key));
            let refused = answer(request).await;
            assert_eq!(refused.refusal(), (401, "UNAUTHORIZED"), "{path} with {key:?}");
            assert!(refused.headers.contains_key("www-authenticate"));
        }
    }
    for path in ["/health", "/health/ready", "/openapi.json", "/docs"] {
        assert_eq!(answer(http().get(place.url(path))).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_key_is_taken_from_either_header() {
    let place = Place::start().await;
    let bearer = http().get(place.url("/api/v1/runs")).bearer_auth(&place.read);
    assert_eq!(answer(bearer).await.status, 200);
    assert_eq!(place.get("/api/v1/runs", &place.read).await.status, 200);
    let basic = http().get(place.url("/api/v1/runs")).basic_auth("me", Some(&place.read));
    assert_eq!(answer(basic).await.refusal(), (401, "UNAUTHORIZED"));
}

#[tokio::test]
async fn a_scope_opens_what_it_is_for_and_nothing_else() {
    let place = Place::start().await;
    let task = json!({ "command": ["true"] });
    assert_eq!(place.post("/api/v1/runs", &place.read, &task).await.refusal(), (403, "MISSING_SCOPE"));
    assert_eq!(place.post("/api/v1/runs", &place.run, &task).await.status, 202);
    assert_eq!(place.get("/api/v1/audit", &place.run).await.refusal(), (403, "MISSING_SCOPE"));
    assert_eq!(place.get("/api/v1/audit", &place.system).await.status, 200);
    let only_system = place.key("operator", &[Scope::System]).await;
    let listed = place.get("/api/v1/runs", only_system.key.reveal()).await;
    assert_eq!(listed.status, 200, "`system` implies the others");
}

#[tokio::test]
async fn a_revoked_key_opens_nothing_soon_after() {
    let place = Place::start().await;
    let made = place.key("k", &[Scope::Read]).await;
    assert_eq!(place.get("/api/v1/runs", made.key.reveal()).await.status, 200);
    place.operations().revoke_key(&Actor::LocalUser, &made.id).await.unwrap();
    while place.get("/api/v1/runs", made.key.reveal()).await.status != 401 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_use_of_a_key_is_written_down_once() {
    let place = Place::start().await;
    for _ in 0..3 {
        place.get("/api/v1/runs", &place.read).await;
    }
    let used: Vec<_> =
        place.store.keys().await.unwrap().into_iter().filter_map(|key| key.used_at_ms).collect();
    assert_eq!(used.len(), 1);
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused_whatever_it_resolves_to() {
    let settings = r#"{"service": {"allowed_hosts": ["cofferdam.example"]}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let with_host = |host: &'static str| {
        answer(http().get(place.url("/api/v1/runs")).header("x-api-key", &place.read).header("host", host))
    };
    assert_eq!(with_host("evil.example").await.refusal(), (403, "HOST_NOT_ALLOWED"));
    assert_eq!(with_host("127.0.0.1.evil.example").await.refusal(), (403, "HOST_NOT_ALLOWED"));
    assert_eq!(with_host("10.0.0.1").await.refusal(), (403, "HOST_NOT_ALLOWED"));
    assert_eq!(with_host("a@localhost").await.refusal(), (400, "INVALID_REQUEST"));
    for host in ["localhost:1234", "127.0.0.1", "cofferdam.example"] {
        assert_eq!(with_host(host).await.status, 200, "{host}");
    }
    // Also where no key is needed: a page would otherwise read what it must not.
    let health = http().get(place.url("/health")).header("host", "evil.example");
    assert_eq!(answer(health).await.refusal(), (403, "HOST_NOT_ALLOWED"));
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_unless_it_is_named() {
    let settings = r#"{"service": {"cors_origins": ["https://app.example"]}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let with = |name: &'static str, value: String| {
        answer(http().get(place.url("/api/v1/runs")).header("x-api-key", &place.read).header(name, value))
    };
    let cross = [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ];
    for (name, value) in cross {
        assert_eq!(
            with(name, value.to_owned()).await.refusal(),
            (403, "ORIGIN_NOT_ALLOWED"),
            "{name}: {value}"
        );
    }
    // A link, or a window that a page opens: to be read by people, and not to have anything done.
    let follow = |path: &str| {
        let request = http().get(place.url(path)).header("x-api-key", &place.system);
        answer(request.header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "navigate"))
    };
    assert_eq!(follow("/docs").await.status, 200);
    for path in ["/system/claude/auth", "/system/doctor", "/api/v1/runs"] {
        assert_eq!(follow(path).await.refusal(), (403, "ORIGIN_NOT_ALLOWED"), "{path}");
    }
    assert_eq!(with("origin", format!("http://{}", place.address)).await.status, 200);
    assert_eq!(with("sec-fetch-site", "same-origin".to_owned()).await.status, 200);
    let named = with("origin", "https://app.example".to_owned()).await;
    assert_eq!(named.headers["access-control-allow-origin"], "https://app.example");
    let preflight = http()
        .request(reqwest::Method::OPTIONS, place.url("/api/v1/runs"))
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST");
    assert!(answer(preflight).await.headers.contains_key("access-control-allow-methods"));
}

#[tokio::test]
async fn without_a_key_only_this_machine_gets_in_and_never_beyond_the_lists() {
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
    let list = || http().get(place.url("/api/v1/runs"));
    assert_eq!(answer(list()).await.status, 200);
    assert_eq!(answer(list().header("x-api-key", "cof_wrong")).await.refusal(), (401, "UNAUTHORIZED"));
    let host = http()
        .post(place.url("/api/v1/runs"))
        .json(&json!({ "command": ["true"], "options": { "mode": "host" } }));
    assert_eq!(answer(host).await.refusal(), (403, "NOT_ALLOWED"));
    let form = http().post(place.url("/api/v1/runs")).header("content-type", "text/plain").body("{}");
    assert_eq!(answer(form).await.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"));
}

#[tokio::test]
async fn what_a_proxy_may_have_passed_on_needs_a_key() {
    let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
    for name in [
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "X-Forwarded-Proto",
        "x-forwarded-port",
        "x-real-ip",
    ] {
        let proxied = http().get(place.url("/api/v1/runs")).header(name, "203.0.113.7");
        assert_eq!(answer(proxied).await.refusal(), (401, "UNAUTHORIZED"), "{name}");
    }
    // As nginx passes a request on that is told no more than `proxy_pass`.
    let status = async |version: &str, more: &str| {
        let mut stream = TcpStream::connect(place.address).await.unwrap();
        let head = format!(
            "GET /api/v1/runs {version}\r\nhost: {}\r\nconnection: close\r\n{more}\r\n",
            place.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap().split_off("HTTP/1.x ".len())
    };
    assert_eq!(status("HTTP/1.0", "").await, "401");
    assert_eq!(status("HTTP/1.0", &format!("x-api-key: {}\r\n", place.read)).await, "200");
    assert_eq!(status("HTTP/1.1", "").await, "200", "it is the version that is refused");
}

#[tokio::test]
async fn what_reaches_beyond_a_sealed_sandbox_needs_the_scope_system() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = repository(folder.path(), "allowed/repo");
    let closed = repository(folder.path(), "closed/repo");
    std::os::unix::fs::symlink(&closed, allowed.parent().unwrap().join("link")).unwrap();
    let root = allowed.parent().unwrap().display().to_string();
    let settings = json!({ "service": {
        "allowed_roots": [root], "allowed_repos": ["https://github.com/acme/*"],
    }});
    let place = Place::with(Setup { settings: settings.to_string(), ..Setup::default() }).await;
    let beyond = [
        json!({ "options": { "mode": "host" } }),
        json!({ "options": { "network": "open" } }),
        json!({ "options": { "env": ["HOME"] } }),
        json!({ "options": { "mounts": [{ "path": "/srv" }] } }),
        json!({ "options": { "allow": ["10.0.0.1:5432"] } }),
        json!({ "options": { "forward": ["5432=db.example:5432"] } }),
        json!({ "options": { "mode": "docker", "image": "mine:latest" } }),
        json!({ "options": { "memory": "900g" } }),
        json!({ "options": { "unmask": [".env"] } }),
        json!({ "repo": "/etc" }),
        json!({ "repo": "/does/not/exist" }),
        json!({ "repo": closed.display().to_string() }),
        json!({ "repo": allowed.parent().unwrap().join("link").display().to_string() }),
        json!({ "repo": format!("{}/../../closed/repo", allowed.display()) }),
        json!({ "repo": "https://github.com/evil/app" }),
        json!({ "repo": "evil/app" }),
    ];
    for wish in beyond {
        let mut body = wish.clone();
        body["command"] = json!(["true"]);
        let refused = place.post("/api/v1/runs", &place.run, &body).await;
        assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"), "{wish} {}", refused.body);
        assert!(refused.body["details"]["hint"].is_string(), "{wish}");
    }
    for wish in [
        json!({ "repo": allowed.display().to_string() }),
        json!({ "repo": "acme/app" }),
        json!({ "options": { "memory": "128m", "allow": ["npm"] } }),
    ] {
        let mut body = wish.clone();
        body["command"] = json!(["true"]);
        let accepted = place.post("/api/v1/runs", &place.run, &body).await;
        assert_eq!(accepted.status, 202, "{wish} {}", accepted.body);
    }
    for wish in [json!({ "options": { "mode": "host" } }), json!({ "repo": closed.display().to_string() })] {
        let mut body = wish.clone();
        body["command"] = json!(["true"]);
        assert_eq!(place.post("/api/v1/runs", &place.system, &body).await.status, 202, "{wish}");
    }
    assert!(place.store.nodes().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_run_that_needed_system_is_not_run_again_without_it() {
    let place = Place::start().await;
    let body = json!({ "command": ["true"], "options": { "mode": "host" } });
    let made = place.post("/api/v1/runs", &place.system, &body).await;
    let id = made.body["id"].as_str().unwrap().to_owned();
    let retry = format!("/api/v1/runs/{id}/retry");
    assert_eq!(place.post(&retry, &place.system, &json!({})).await.refusal(), (409, "RUN_NOT_ENDED"));
    let same_owner = place.key("operator", &[Scope::Run]).await;
    let cancel = format!("/api/v1/runs/{id}/cancel");
    for key in [&place.run, same_owner.key.reveal()] {
        assert_eq!(place.post(&cancel, key, &json!({})).await.refusal(), (403, "NOT_ALLOWED"));
        assert_eq!(place.post(&retry, key, &json!({})).await.refusal(), (403, "NOT_ALLOWED"));
    }
    assert_eq!(place.post(&cancel, &place.system, &json!({})).await.status, 200);
    assert_eq!(place.post(&retry, &place.system, &json!({})).await.status, 202);
}

#[tokio::test]
async fn every_change_is_written_down_with_who_made_it() {
    let place = Place::start().await;
    let run = place.queued().await;
    place
        .post(
            &format!("/api/v1/runs/{run}/messages"),
            &place.run,
            &json!({ "kind": "steer", "content": "x" }),
        )
        .await;
    place.post(&format!("/api/v1/runs/{run}/cancel"), &place.run, &json!({})).await;
    place.post("/api/v1/projects", &place.system, &json!({ "name": "p", "repo": "acme/app" })).await;
    place.delete("/api/v1/projects/p", &place.system).await;
    let audit = place.get("/api/v1/audit?limit=5", &place.system).await.body;
    let changes = audit["changes"].as_array().unwrap();
    let actions: Vec<&str> = changes.iter().map(|change| change["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["project.remove", "project.create", "run.cancel", "run.message", "run.create"]);
    assert!(changes.iter().all(|change| change["actor"].as_str().unwrap().parse::<KeyId>().is_ok()));
    assert_eq!(changes[4]["subject"], run.as_str());
    let next = audit["next_before"].as_u64().unwrap();
    let rest = place.get(&format!("/api/v1/audit?before={next}"), &place.system).await.body;
    assert_eq!(rest["changes"].as_array().unwrap().len(), 3, "the keys");
}

#[tokio::test]
async fn the_service_does_not_start_open_to_everybody() {
    use cofferdam_core::{Effective, NodeId, Origin, PlaceId, read_layer};
    use cofferdam_server::{Bounds, LocalArtifacts, Options, Service, StartError};
    let place = Place::start().await;
    let options = |settings: &str, listen: &str| Options {
        support_of: |agent| cofferdam_agent::profile(agent).support,
        service: NodeId::new(1, 98),
        logs: std::sync::Arc::new(cofferdam_server::NoLogs),
        store: place.store.clone(),
        settings: std::sync::Arc::new(
            Effective::default().under(&read_layer(settings, &Origin::Global("/g".into())).unwrap()),
        ),
        place: PlaceId::new(1, 1),
        state_folder: None,
        home: None,
        node: NodeId::new(1, 98),
        artifacts: std::sync::Arc::new(LocalArtifacts::new("/nowhere".into())),
        trust: std::sync::Arc::new(|| Ok(cofferdam_api::TrustList::default())),
        listen: listen.parse().unwrap(),
        keys: KeyRule::NotOnLoopback,
        bounds: Bounds::default(),
    };
    assert!(matches!(Service::new(options("{}", "0.0.0.0:1")).err(), Some(StartError::OpenToOthers(_))));
    for mode in ["native:open", "host:open"] {
        let settings = json!({ "service": { "allowed_modes": [mode] } }).to_string();
        let refused = Service::new(options(&settings, "127.0.0.1:1")).err();
        assert!(matches!(refused, Some(StartError::NoWalls(_))), "{mode}");
    }
    assert!(Service::new(options("{}", "127.0.0.1:1")).is_ok());
}
