//! What a tenant has set: secrets and configuration values, read by search (is it set?) and by
//! call (the value).

use secrecy::SecretString;

use crate::domain::{SettingName, TenantId};

/// A setting could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read setting `{name}`")]
pub struct ReadSettingError {
    /// Which one.
    pub name: SettingName,
    /// Why.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A tenant's own values. No tenant reads another's.
pub trait Settings: Send + Sync {
    /// The secret, or `None` when it is not set.
    fn secret(
        &self,
        tenant: &TenantId,
        name: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError>;

    /// Whether the secret is set; the value is not decrypted.
    fn has_secret(&self, tenant: &TenantId, name: &SettingName) -> bool;

    /// The configuration value, or `None` when it is not set.
    fn config(&self, tenant: &TenantId, name: &SettingName) -> Option<String>;
}
