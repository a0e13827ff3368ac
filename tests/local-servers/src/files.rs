//! Files over https.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use tokio::net::TcpListener;

use crate::authority::Authority;
use crate::serve::serve;

type Table = Arc<Mutex<BTreeMap<String, (&'static str, Bytes)>>>;

/// A server that answers from a table of paths.
pub struct Files {
    address: SocketAddr,
    table: Table,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Files {
    /// Starts a server without files, with a certificate for these names.
    ///
    /// # Panics
    /// If there is no port left.
    pub async fn start(authority: &Authority, names: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a socket has an address");
        let (table, asked) = (Table::default(), Arc::<Mutex<Vec<String>>>::default());
        let (answers, log) = (Arc::clone(&table), Arc::clone(&asked));
        tokio::spawn(serve(listener, Some(authority.acceptor(names)), move |request| {
            let path = request.uri().path().to_owned();
            let found = lock(&answers).get(&path).cloned();
            lock(&log).push(path);
            std::future::ready(answer(found))
        }));
        Self { address, table, asked }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts a file at a path.
    pub fn put(&self, path: &str, content_type: &'static str, content: impl Into<Bytes>) {
        lock(&self.table).insert(path.to_owned(), (content_type, content.into()));
    }

    /// The paths that were asked for.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

fn answer(found: Option<(&'static str, Bytes)>) -> Response<Full<Bytes>> {
    let Some((content_type, content)) = found else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response = Response::new(Full::new(content));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
