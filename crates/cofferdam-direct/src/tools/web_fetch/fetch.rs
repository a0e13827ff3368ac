//! Fetching a page into a file, within bounds. Nothing of it is looked at here.

use std::path::Path;
use std::time::Duration;

use cofferdam_core::AllowRule;
use cofferdam_net::{AddressCheck, Client, Dialer, RequestError, full};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, USER_AGENT,
};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::io::AsyncWriteExt;
use url::Url;

use super::address;

/// How long a page may take, with everything that it redirects to.
const WITHIN: Duration = Duration::from_secs(30);
/// What a server may send.
const MOST_BYTES: u64 = 8 << 20;
/// How often a page may send to another.
const MOST_REDIRECTS: usize = 5;
/// What we ask for.
const WANTED: &str =
    "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.1";

/// Fetches pages.
pub(super) struct Fetcher {
    client: Client,
    allow: Vec<AllowRule>,
}

/// What is known of a page that was fetched.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Where it was in the end.
    pub(super) url: Url,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
}

impl Fetcher {
    pub(super) fn new(dialer: Dialer, allow: Vec<AllowRule>) -> Self {
        let check = AddressCheck::Listed(allow.clone().into());
        Self { client: Client::new(dialer, check), allow }
    }

    /// Fetches a page into a file. The error is for the model.
    pub(super) async fn fetch(&self, url: &str, into: &Path) -> Result<Fetched, String> {
        let url = address::read(url)?;
        let fetched = tokio::time::timeout(WITHIN, self.follow(url, into)).await;
        fetched.unwrap_or_else(|_| Err(format!("the page took longer than {} s", WITHIN.as_secs())))
    }

    async fn follow(&self, mut url: Url, into: &Path) -> Result<Fetched, String> {
        for _ in 0..=MOST_REDIRECTS {
            address::check(&url, &self.allow)?;
            let answer = get(&self.client, &url, WANTED).await?;
            match redirect(&answer, &url)? {
                Some(next) => url = next,
                None => return keep(url, answer, into).await,
            }
        }
        Err(format!("the page redirects more than {MOST_REDIRECTS} times"))
    }
}

/// Asks for a page. No redirect is followed, and nothing of ours is sent: no cookie, no key, no address that we come from.
pub(in crate::tools) async fn get(
    client: &Client,
    url: &Url,
    accept: &str,
) -> Result<Response<Incoming>, String> {
    let mut url = url.clone();
    url.set_fragment(None);
    let request = Request::get(url.as_str())
        .header(ACCEPT, accept)
        .header(ACCEPT_ENCODING, "gzip")
        .header(USER_AGENT, concat!("Cofferdam/", env!("CARGO_PKG_VERSION")))
        .body(full(""));
    let request = request.map_err(|error| format!("the address cannot be asked for: {error}"))?;
    client.request(request).await.map_err(|error| match error {
        // Where an internal name leads is nothing that a page may learn.
        RequestError::Connect { authority, private: Some(_), .. } => {
            format!("{authority} is not fetched: it is at no public address")
        }
        error => error.to_string(),
    })
}

/// Where an answer sends to, if it does.
fn redirect(answer: &Response<Incoming>, from: &Url) -> Result<Option<Url>, String> {
    let is_redirect = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = answer.headers().get(LOCATION).filter(|_| is_redirect) else { return Ok(None) };
    let next = location.to_str().ok().and_then(|location| from.join(location).ok());
    next.map(Some).ok_or_else(|| "the page redirects to what is not an address".to_owned())
}

async fn keep(url: Url, answer: Response<Incoming>, into: &Path) -> Result<Fetched, String> {
    let (status, headers) = (answer.status(), answer.headers());
    if status == StatusCode::NO_CONTENT || status.is_redirection() {
        return Err(format!("the server answered {status}, without a page"));
    }
    let too_large = || format!("the page is larger than {} MiB", MOST_BYTES >> 20);
    let announced = text(headers, CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MOST_BYTES) {
        return Err(too_large());
    }
    let fetched = Fetched {
        url,
        status: status.as_u16(),
        content_type: text(headers, CONTENT_TYPE),
        content_encoding: text(headers, CONTENT_ENCODING),
    };
    let kept = |error: std::io::Error| format!("the page could not be kept: {}", error.kind());
    let mut file = tokio::fs::File::create(into).await.map_err(kept)?;
    let (mut body, mut length) = (answer.into_body(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| "the server ended the page before its end".to_owned())?;
        let Ok(piece) = frame.into_data() else { continue };
        length += piece.len() as u64;
        if length > MOST_BYTES {
            return Err(too_large());
        }
        file.write_all(&piece).await.map_err(kept)?;
    }
    file.flush().await.map_err(kept)?;
    Ok(fetched)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
