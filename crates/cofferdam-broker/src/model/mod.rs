//! The routes to the model. Nothing is routed yet.

use std::sync::Arc;

use cofferdam_core::AttemptRef;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::body::{Body, full};
use crate::dial::Dialer;
use crate::grant::ModelGrant;
use crate::ledger::{Ledger, LedgerError};
use crate::options::Options;

/// The routes of one attempt.
pub(crate) struct Routes;

impl Routes {
    /// Opens the routes.
    #[expect(clippy::unused_async, reason = "what was spent is asked for here")]
    pub(crate) async fn open(
        _grant: &ModelGrant,
        _attempt: AttemptRef,
        _options: Arc<Options>,
        _ledger: Arc<dyn Ledger>,
        _dialer: Dialer,
    ) -> Result<Self, LedgerError> {
        Ok(Self)
    }

    /// Answers a request below `/model/`.
    #[expect(clippy::unused_async, reason = "the model is asked here")]
    pub(crate) async fn handle(&self, _request: Request<Incoming>) -> Response<Body> {
        let mut response = Response::new(full("cofferdam: no model is routed\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }

    /// Waits until calls in flight are written down.
    #[expect(clippy::unused_async, reason = "calls are waited for here")]
    pub(crate) async fn settle(&self) {}
}
