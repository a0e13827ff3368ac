//! Services of the host, reached from a container both ways: by their rewritten address where the network is open, and
//! put on the sandbox's own loopback where it is sealed.

use cofferdam_e2e::{Engine, HostServices, Record};
use cofferdam_scripted_model::Script;

use crate::docker::stage::Stage;

#[test]
fn section_6_the_hosts_services_are_reached_from_an_open_and_from_a_sealed_container() {
    let Some(engine) = Engine::find() else { return };
    let services = HostServices::start();
    let (postgres, redis) = (services.postgres, services.redis);
    let mut stage = Stage::on(&engine, Script::new([]));
    services.name_to(&mut stage.fixture);
    let image =
        ["--mode", "docker", "--image", engine.base_image(), "--env", "DATABASE_URL", "--env", "REDIS_URL"];
    let ask = |flags: &[&str]| stage.fixture.run(&[&image[..], flags].concat(), HostServices::ASK);
    let found = HostServices::FOUND;

    let open = ask(&["--network", "open"]);
    assert_eq!(open.outcome(), "succeeded", "{}", open.stderr);
    assert_eq!(Record::of(&stage.fixture, &open.run_id()).messages(), found, "{}", open.stderr);

    let forwards = [format!("{postgres}=127.0.0.1:{postgres}"), format!("{redis}=127.0.0.1:{redis}")];
    let sealed = ask(&["--network", "sealed", "--forward", &forwards[0], "--forward", &forwards[1]]);
    assert_eq!(sealed.outcome(), "succeeded", "{}", sealed.stderr);
    assert_eq!(Record::of(&stage.fixture, &sealed.run_id()).messages(), found, "{}", sealed.stderr);

    // Without either there is no way: what was found above was found through what was asked for.
    let closed = ask(&["--network", "sealed"]);
    let told = Record::of(&stage.fixture, &closed.run_id());
    assert!(!told.messages().iter().any(|line| found.contains(line)), "{:?}", told.messages());

    let settings = serde_json::json!({ "sandbox": { "forwards": services.forwards() } });
    std::fs::write(stage.fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    let named = ask(&["--network", "sealed", "--forward", "db"]);
    assert_eq!(named.outcome(), "succeeded", "{}", named.stderr);
    assert_eq!(Record::of(&stage.fixture, &named.run_id()).messages(), found, "{}", named.stderr);
}
