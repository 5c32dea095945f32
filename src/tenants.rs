//! Tenants: who may come in, what they have set, how much they may use.

mod credential;
mod file;
mod directory;
mod vault;
mod limits;

pub use self::credential::{Credential, ParseCredentialError};
pub use self::directory::{ChangeTenantsError, Directory, TenantLimits, TenantSummary};
pub use self::limits::{Activity, LimitReached, Limits, Permit};
pub use self::vault::{ChangeSettingError, OpenVaultError, Vault};
