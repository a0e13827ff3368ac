//! What is the operator's: keys, settings, trust; and system control.

use cofferdam_core::{KeyId, KeyInput};
use http::Method;

use super::{Client, ClientError};
use crate::agent::NodeAgentsList;
use crate::config::{ChangeConfigRequest, ConfigResponse};
use crate::key::{KeyList, MadeKeyResponse};
use crate::settings::SettingsResponse;
use crate::system::{AuthQuery, AuthStatusResponse, DoctorQuery, DoctorResponse};
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

    /// `GET /config`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn config(&self) -> Result<ConfigResponse, ClientError> {
        self.get("config", &()).await
    }

    /// `PATCH /config`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_config(&self, change: &ChangeConfigRequest) -> Result<ConfigResponse, ClientError> {
        self.call(Method::PATCH, "config", Some(change)).await
    }

    /// `GET /system/{claude,codex,opencode}/auth`, by the name of the agent's program.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn check_auth(
        &self,
        program: &str,
        query: &AuthQuery,
    ) -> Result<AuthStatusResponse, ClientError> {
        self.get(&format!("system/{program}/auth"), query).await
    }

    /// `GET /system/agents`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn node_agents(&self) -> Result<NodeAgentsList, ClientError> {
        self.get("system/agents", &()).await
    }

    /// `GET /system/doctor`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn doctor(&self, query: &DoctorQuery) -> Result<DoctorResponse, ClientError> {
        self.get("system/doctor", query).await
    }
}
