use cofferdam_core::AllowRule;

use super::*;

/// A server that says the same to everybody.
async fn server(said: &'static [u8]) -> HostPort {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string().parse().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(said).await;
        }
    });
    at
}

async fn tunnel(target: &HostPort, check: AddressCheck, most_bytes: u64) -> Tunnel {
    let dialer = Dialer::new(&["127.0.0.1:9".parse().unwrap()], Duration::from_secs(5));
    let fetch = CheckedFetch { dialer, check, runtime: Handle::current(), most_bytes };
    let target = target.clone();
    tokio::task::spawn_blocking(move || Tunnel::open(&fetch, target).unwrap()).await.unwrap()
}

async fn ask(tunnel: &Tunnel, target: &str, authorization: &str) -> String {
    let mut stream = TcpStream::connect(tunnel.address).await.unwrap();
    let head = format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: {authorization}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn public() -> AddressCheck {
    AddressCheck::Listed(Vec::<AllowRule>::new().into())
}

#[tokio::test]
async fn it_leads_the_git_of_its_fetch_to_the_one_host() {
    let (target, other) = (server(b"the repository").await, server(b"the secret").await);
    let tunnel = tunnel(&target, AddressCheck::Trusted, 1 << 20).await;
    let ours = tunnel.state.authorization.clone();
    assert!(ask(&tunnel, &target.to_string(), &ours).await.ends_with("\r\n\r\nthe repository"));
    for (target, authorization) in [
        (other.to_string(), ours.as_str()),
        (format!("localhost:{}", target.port), &ours),
        (target.to_string(), "Basic eA=="),
        (target.to_string(), ""),
    ] {
        let refused = ask(&tunnel, &target, authorization).await;
        assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("the "), "{target}: {refused}");
    }
    assert_eq!(tunnel.trouble(), None);
}

#[tokio::test]
async fn a_host_at_an_address_that_is_not_public_is_not_dialled() {
    let target = server(b"the secret").await;
    let tunnel = tunnel(&target, public(), 1 << 20).await;
    let refused = ask(&tunnel, &target.to_string(), &tunnel.state.authorization).await;
    assert!(refused.starts_with("HTTP/1.1 502") && !refused.contains("secret"), "{refused}");
    let (fault, message) = tunnel.trouble().unwrap();
    assert!(fault == FetchFault::Address && message.contains("which is not a public address"), "{message}");
}

#[tokio::test]
async fn a_fetch_that_is_too_large_is_cut_and_told() {
    let target = server(&[b'x'; 4096]).await;
    let tunnel = tunnel(&target, AddressCheck::Trusted, 100).await;
    let cut = ask(&tunnel, &target.to_string(), &tunnel.state.authorization).await;
    assert!(!cut.contains('x'), "{}", cut.len());
    assert_eq!(tunnel.trouble().unwrap().1, "it is larger than 100 bytes");
}
