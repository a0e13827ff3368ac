//! Stands before a real PostgreSQL server, and lets connections fall in the middle of the handshake, or at a commit.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cofferdam_core::StoreUrl;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A message of a kind that there is not.
const GARBAGE: &[u8] = b"\x7f\0\0\0\x05!";
/// That the user is let in: the session is not ready yet.
const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0";
const COMMIT: &[u8] = b"COMMIT";
const NO_TLS: &[u8] = b"N";
const TLS: &[u8] = b"S";

/// Where a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fall {
    /// Before a word was said.
    AtOnce,
    /// With an end of file in place of the answer whether there is TLS, which is a byte 0 to the driver.
    WithoutAnAnswer,
    /// With that byte itself.
    ByteZero,
    /// After the answer.
    AfterTheAnswer,
    /// With nonsense in the middle of TLS.
    InTls,
    /// With nonsense where the server says how it wants to know who asks.
    BeforeAuthentication,
    /// In the middle of a message.
    HalfAMessage,
    /// With nonsense after the server itself has asked for the password.
    InAuthentication,
    /// After the user was let in, before the session is ready.
    BeforeItIsReady,
    /// With a certificate that nobody has signed.
    BadCertificate,
    /// At the first commit, which the server never hears of.
    AtTheCommit,
    /// After the first commit was made, before the answer.
    AfterTheCommit,
}

impl Fall {
    /// What happens to a server that dies.
    pub(crate) const OF_A_DEAD_SERVER: [Self; 9] = [
        Self::AtOnce,
        Self::WithoutAnAnswer,
        Self::ByteZero,
        Self::AfterTheAnswer,
        Self::InTls,
        Self::BeforeAuthentication,
        Self::HalfAMessage,
        Self::InAuthentication,
        Self::BeforeItIsReady,
    ];
}

/// Listens on the loopback, and carries the bytes of every connection that is not to fall.
pub(crate) struct Doorman {
    url: String,
    falls: Arc<Mutex<VecDeque<Fall>>>,
    seen: Arc<AtomicUsize>,
    /// Each connection holds one of its receivers.
    cuts: watch::Sender<u32>,
    serving: JoinHandle<()>,
}

impl Doorman {
    pub(crate) async fn before(server: &StoreUrl) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let own = listener.local_addr().expect("it listens").to_string();
        let (login, rest) = server.secret().rsplit_once('@').expect("it names a user");
        let (server, database) = rest.split_once('/').expect("it names a database");
        let (server, url) = (server.to_owned(), format!("{login}@{own}/{database}"));
        let falls: Arc<Mutex<VecDeque<Fall>>> = Arc::default();
        let seen: Arc<AtomicUsize> = Arc::default();
        let (cuts, _) = watch::channel(0);
        let serving = {
            let (falls, seen, cuts) = (Arc::clone(&falls), Arc::clone(&seen), cuts.clone());
            tokio::spawn(async move {
                while let Ok((client, _)) = listener.accept().await {
                    seen.fetch_add(1, Ordering::Relaxed);
                    let fall = falls.lock().expect("nobody panics").pop_front();
                    let (server, mut cut) = (server.clone(), cuts.subscribe());
                    tokio::spawn(async move {
                        tokio::select! {
                            served = serve(client, &server, fall) => drop(served),
                            _ = cut.changed() => {}
                        }
                        // The connection is closed by now.
                        drop(cut);
                    });
                }
            })
        };
        Self { url, falls, seen, cuts, serving }
    }

    /// The address of the server as it is behind the door.
    pub(crate) fn url(&self) -> StoreUrl {
        self.url_with(|url| url)
    }

    /// The same with something changed.
    pub(crate) fn url_with(&self, change: impl FnOnce(String) -> String) -> StoreUrl {
        change(self.url.clone()).parse().expect("an address")
    }

    /// Lets the next so many connections fall.
    pub(crate) fn let_fall(&self, fall: Fall, count: usize) {
        self.falls.lock().expect("nobody panics").extend(std::iter::repeat_n(fall, count));
    }

    /// Whether all of them have fallen.
    pub(crate) fn is_done(&self) -> bool {
        self.falls.lock().expect("nobody panics").is_empty()
    }

    /// Cuts every connection, and waits until they are closed.
    pub(crate) async fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
        self.cuts.closed().await;
    }

    /// How many connections have come.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Drop for Doorman {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut client: TcpStream, server: &str, fall: Option<Fall>) -> io::Result<()> {
    let Some(fall) = fall else {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await?;
        return Ok(());
    };
    match fall {
        Fall::AtOnce => return Ok(()),
        Fall::AtTheCommit | Fall::AfterTheCommit => return until_a_commit(client, server, fall).await,
        _ => {}
    }
    if fall == Fall::InAuthentication {
        let mut server = TcpStream::connect(server).await?;
        // Whether there is TLS, and who wants in.
        for _ in 0..2 {
            pass(&mut client, &mut server).await?;
            pass(&mut server, &mut client).await?;
        }
        listen(&mut client).await?;
        return client.write_all(GARBAGE).await;
    }
    listen(&mut client).await?;
    match fall {
        Fall::AtOnce
        | Fall::InAuthentication
        | Fall::WithoutAnAnswer
        | Fall::AtTheCommit
        | Fall::AfterTheCommit => return Ok(()),
        Fall::ByteZero => return client.write_all(&[0]).await,
        Fall::AfterTheAnswer => return client.write_all(NO_TLS).await,
        Fall::InTls => {
            client.write_all(TLS).await?;
            listen(&mut client).await?;
            return client.write_all(GARBAGE).await;
        }
        Fall::BadCertificate => {
            client.write_all(TLS).await?;
            return unsigned().accept(client).await.map(drop);
        }
        Fall::BeforeAuthentication | Fall::HalfAMessage | Fall::BeforeItIsReady => {}
    }
    client.write_all(NO_TLS).await?;
    listen(&mut client).await?;
    client
        .write_all(match fall {
            Fall::HalfAMessage => &LET_IN[..6],
            Fall::BeforeItIsReady => LET_IN,
            _ => GARBAGE,
        })
        .await
}

/// Carries what both say until the client commits.
async fn until_a_commit(mut client: TcpStream, server: &str, fall: Fall) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    loop {
        let (mut asked, mut answered) = ([0; 16 << 10], [0; 16 << 10]);
        tokio::select! {
            count = client.read(&mut asked) => {
                let asked = &asked[..count?];
                let commits = asked.windows(COMMIT.len()).any(|part| part == COMMIT);
                match (commits, fall) {
                    (true, Fall::AtTheCommit) => return Ok(()),
                    (true, _) => {
                        server.write_all(asked).await?;
                        return listen(&mut server).await.map(drop);
                    }
                    (false, _) if asked.is_empty() => return Ok(()),
                    (false, _) => server.write_all(asked).await?,
                }
            }
            count = server.read(&mut answered) => match count? {
                0 => return Ok(()),
                count => client.write_all(&answered[..count]).await?,
            },
        }
    }
}

async fn pass(from: &mut TcpStream, to: &mut TcpStream) -> io::Result<()> {
    let said = listen(from).await?;
    to.write_all(&said).await
}

/// What the other side says, which is one message on the loopback.
async fn listen(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut said = vec![0; 16 << 10];
    let count = from.read(&mut said).await?;
    said.truncate(count);
    Ok(said)
}

fn unsigned() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they belong together");
    TlsAcceptor::from(Arc::new(config))
}
