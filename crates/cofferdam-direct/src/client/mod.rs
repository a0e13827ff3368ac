//! Reaches the model: one HTTP exchange for each answer, and again after a failure that may pass.

mod events;
mod exchange;
mod patience;
mod trouble;

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_core::ModelTrouble;
use http::HeaderMap;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answer::{Answer, Piece};
use crate::usage::Usage;
use exchange::Exchange;
pub use patience::Patience;

/// Opens a connection to whoever answers for the model.
#[async_trait]
pub trait Connect: Send + Sync {
    /// Opens one more.
    async fn connect(&self) -> io::Result<Box<dyn Connection>>;
}

/// Bytes in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A client of the Messages API. It holds no key: whoever is behind the connection adds it.
#[derive(Clone)]
pub struct ModelClient {
    connect: Arc<dyn Connect>,
    headers: HeaderMap,
    patience: Patience,
    /// Before each path of the API.
    base: String,
}

impl ModelClient {
    /// A client that sends these headers with each request, beside what the API wants.
    #[must_use]
    pub fn new(connect: Arc<dyn Connect>, headers: HeaderMap, patience: Patience) -> Self {
        Self { connect, headers, patience, base: String::new() }
    }

    /// The same for an API whose paths are below this one, which begins with a slash and ends without.
    #[must_use]
    pub fn below(mut self, base: &str) -> Self {
        base.clone_into(&mut self.base);
        self
    }

    /// Asks one question, without tools, and returns what the model said.
    ///
    /// # Errors
    /// The model could not be used.
    pub async fn ask(
        &self,
        model: &str,
        system: &str,
        text: &str,
        max_tokens: u32,
    ) -> Result<(String, Usage), ModelTrouble> {
        let body = json!({
            "model": model,
            "max_tokens": max_tokens,
            "system": system,
            "messages": [{ "role": "user", "content": text }],
            "stream": true,
        });
        let answer = self.answer(body.to_string().into(), &mut |_| {}).await?;
        let texts = answer.content.iter().filter_map(|block| block["text"].as_str());
        Ok((texts.collect(), answer.usage))
    }

    /// Sends a request until there is an answer, or no more use in asking. Once a piece was shown nothing is asked
    /// again: the model would say it in other words.
    pub(crate) async fn answer(
        &self,
        request: Bytes,
        show: &mut (dyn FnMut(Piece<'_>) + Send),
    ) -> Result<Answer, ModelTrouble> {
        let mut failures = 0;
        loop {
            let mut was_shown = false;
            let mut noting = |piece: Piece<'_>| {
                was_shown = true;
                show(piece);
            };
            let exchange = Exchange { connect: &*self.connect, headers: &self.headers, base: &self.base };
            let trouble = match exchange.answer(request.clone(), &mut noting).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            failures += 1;
            match self.patience.wait_after(failures, &trouble) {
                Some(wait) if !was_shown => tokio::time::sleep(wait).await,
                _ => return Err(trouble),
            }
        }
    }
}
