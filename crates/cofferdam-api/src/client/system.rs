//! What is the operator's: keys, settings, trust.

use cofferdam_core::{KeyId, KeyInput};
use http::Method;

use super::{Client, ClientError};
use crate::key::{KeyList, MadeKeyResponse};
use crate::settings::SettingsResponse;
use crate::trust::TrustList;

impl Client {
    /// `POST /api/v1/keys`. The answer is the only one that ever holds the key.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_key(&self, key: &KeyInput) -> Result<MadeKeyResponse, ClientError> {
        self.call(Method::POST, "api/v1/keys", Some(key)).await
    }

    /// `GET /api/v1/keys`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn keys(&self) -> Result<KeyList, ClientError> {
        self.get("api/v1/keys", &()).await
    }

    /// `DELETE /api/v1/keys/{id}`.
    ///
    /// # Errors
    /// [`ClientError`], with the code `KEY_NOT_FOUND` if there is none.
    pub async fn revoke_key(&self, id: &KeyId) -> Result<(), ClientError> {
        self.call(Method::DELETE, &format!("api/v1/keys/{id}"), None::<&()>).await
    }

    /// `GET /system/settings`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn settings(&self) -> Result<SettingsResponse, ClientError> {
        self.get("system/settings", &()).await
    }

    /// `GET /system/trust`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn trust(&self) -> Result<TrustList, ClientError> {
        self.get("system/trust", &()).await
    }
}
