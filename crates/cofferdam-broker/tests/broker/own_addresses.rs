//! Names that lead to this machine by an address that looks like anybody's.

use crate::support::own_network::{in_own_network, ip, until_routed};
use crate::support::servers::Web;
use crate::support::{Fixture, rules};
use cofferdam_core::EventType;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[tokio::test]
async fn a_name_at_a_public_address_of_this_machine_is_refused_unless_the_address_is_listed() {
    if !in_own_network(
        "own_addresses::a_name_at_a_public_address_of_this_machine_is_refused_unless_the_address_is_listed",
    ) {
        return;
    }
    let fixture = Fixture::new().await;
    let client = fixture.attempt(1, &[]).await;
    // Each is added after the attempt was opened: an interface's address, one of a network that is routed to this machine as a
    // whole, and one of version 6.
    for (number, (address, change)) in [
        ("93.184.216.34", ["address", "add", "93.184.216.34/32", "dev", "lo"].as_slice()),
        ("9.9.9.9", &["route", "add", "local", "9.9.9.0/24", "dev", "lo"]),
        ("2606:4700:4700::1111", &["-6", "address", "add", "2606:4700:4700::1111/128", "dev", "lo", "nodad"]),
    ]
    .into_iter()
    .enumerate()
    {
        if address.contains(':') && !std::path::Path::new("/proc/net/if_inet6").exists() {
            eprintln!("skipped: there is no IPv6 here");
            continue;
        }
        ip(change);
        until_routed(address).await;
        let web = Web::start_at(address, OK).await;
        let port = web.address.port();
        let name = format!("n{number}.mine.example");
        fixture.names.set(&name, &[address]);
        let target = format!("{name}:{port}");
        fixture.broker.allow(&client.attempt, rules(&[&target]));
        let refused = client.get(&target, "/").await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        let reason = format!("{target} is at {}, which is an address of this machine", web.address);
        assert!(refused.contains(&format!("{reason}; add --allow {} ", web.address)), "{refused}");
        let event = fixture.notebook.wait(&client.attempt, EventType::EgressRefused, &target).await;
        assert_eq!(event["reason"], reason);
        assert!(web.seen().is_empty());
        // The same request arrives once the address itself is listed.
        fixture.broker.allow(&client.attempt, rules(&[&target, &web.address.to_string()]));
        let answer = client.get(&target, "/").await;
        assert!(answer.ends_with("hello"), "{answer}");
        assert_eq!(web.seen().len(), 1);
    }
}

#[tokio::test]
async fn of_several_addresses_those_of_others_are_dialled() {
    if !in_own_network("own_addresses::of_several_addresses_those_of_others_are_dialled") {
        return;
    }
    ip(&["address", "add", "93.184.216.34/32", "dev", "lo"]);
    let web = Web::start_at("93.184.216.34", OK).await;
    let fixture = Fixture::new().await;
    let target = format!("mixed.example:{}", web.address.port());
    fixture.names.set("mixed.example", &["93.184.216.34", "1.1.1.1"]);
    let client = fixture.attempt(1, &[&target]).await;
    // There is no way to the other one from here, which is what it says.
    let answer = client.get(&target, "/").await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("at 1.1.1.1:"), "{answer}");
    assert!(web.seen().is_empty());
}
