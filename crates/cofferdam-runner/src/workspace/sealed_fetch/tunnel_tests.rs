use cofferdam_core::AllowRule;
use cofferdam_net::{AddressCheck, Dialer};
use cofferdam_sandbox::{Caller, Options, Tools};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

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

/// A tunnel, and the folder of its socket.
fn tunnel(target: &HostPort, check: AddressCheck, most_bytes: u64) -> (Tunnel, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let fetch = CheckedFetch {
        dialer: Dialer::new(&["127.0.0.1:9".parse().unwrap()], Duration::from_secs(5)),
        check,
        tools: Tools::new(Options::new(folder.path().into(), "/nowhere".into(), Caller::default())),
        git: "/usr/bin/git".into(),
        runtime: Handle::current(),
        most_bytes,
    };
    (Tunnel::open(&fetch, target.clone(), &folder.path().join("way")).unwrap(), folder)
}

async fn ask(folder: &tempfile::TempDir, target: &str) -> String {
    let mut stream = UnixStream::connect(folder.path().join("way").join(gateway::SOCKET)).await.unwrap();
    let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
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
    let (tunnel, folder) = tunnel(&target, AddressCheck::Trusted, 1 << 20);
    assert!(ask(&folder, &target.to_string()).await.ends_with("\r\n\r\nthe repository"));
    for target in [other.to_string(), format!("localhost:{}", target.port), String::new()] {
        let refused = ask(&folder, &target).await;
        assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("the "), "{target}: {refused}");
    }
    assert_eq!(tunnel.trouble(), None);
}

#[tokio::test]
async fn a_host_at_an_address_that_is_not_public_is_not_dialled() {
    let target = server(b"the secret").await;
    let (tunnel, folder) = tunnel(&target, public(), 1 << 20);
    let refused = ask(&folder, &target.to_string()).await;
    assert!(refused.starts_with("HTTP/1.1 502") && !refused.contains("secret"), "{refused}");
    let (fault, message) = tunnel.trouble().unwrap();
    assert!(fault == FetchFault::Address && message.contains("which is not a public address"), "{message}");
}

#[tokio::test]
async fn a_fetch_that_is_too_large_is_cut_and_told() {
    let target = server(&[b'x'; 4096]).await;
    let (tunnel, folder) = tunnel(&target, AddressCheck::Trusted, 100);
    let cut = ask(&folder, &target.to_string()).await;
    assert!(!cut.contains('x'), "{}", cut.len());
    assert_eq!(tunnel.trouble().unwrap().1, "it is larger than 100 bytes");
}
