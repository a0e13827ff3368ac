use tokio::net::TcpListener;

use super::*;

fn rules(texts: &[&str]) -> AddressCheck {
    AddressCheck::Listed(texts.iter().map(|text| text.parse().unwrap()).collect())
}

fn target(text: &str) -> HostPort {
    text.parse().unwrap()
}

#[test]
fn a_name_opens_no_private_address_and_an_exact_address_does() {
    let private = ["10.0.0.7".parse().unwrap()];
    let by_name = permitted(&target("db.corp.net:80"), &private, &rules(&["db.corp.net:80"]));
    assert!(matches!(by_name, Err(DialError::Private { .. })), "{by_name:?}");
    let wrong_port = permitted(&target("db.corp.net:80"), &private, &rules(&["10.0.0.7:81"]));
    assert!(matches!(wrong_port, Err(DialError::Private { .. })), "{wrong_port:?}");
    let listed = permitted(&target("db.corp.net:80"), &private, &rules(&["10.0.0.7:80"])).unwrap();
    assert_eq!(listed, ["10.0.0.7:80".parse().unwrap()]);
}

#[test]
fn of_mixed_addresses_only_the_public_ones_are_dialled() {
    let mixed = ["127.0.0.1", "93.184.216.34", "::1"].map(|text| text.parse().unwrap());
    let found = permitted(&target("a.com:443"), &mixed, &rules(&["a.com:443"])).unwrap();
    assert_eq!(found, ["93.184.216.34:443".parse().unwrap()]);
}

#[tokio::test]
async fn an_address_that_is_listed_is_dialled() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = server.local_addr().unwrap().to_string();
    let dialer = Dialer::new(&["127.0.0.1:9".parse().unwrap()], Duration::from_secs(5));
    let stream = dialer.connect(&target(&at), &rules(&[&at])).await.unwrap();
    assert!(stream.nodelay().unwrap());
    assert_eq!(stream.peer_addr().unwrap().to_string(), at);
    let refused = dialer.connect(&target(&at), &rules(&[])).await.unwrap_err();
    assert!(matches!(refused, DialError::Private { .. }), "{refused}");
}

#[tokio::test]
async fn a_closed_port_is_an_error_that_names_it() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let dialer = Dialer::new(&[], Duration::from_secs(5));
    let error = dialer.connect(&target(&closed.to_string()), &AddressCheck::Trusted).await.unwrap_err();
    assert!(error.to_string().contains(&closed.to_string()), "{error}");
}
