//! The list of tenants, with the hashes of their keys.

use std::io;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::RngCore;
use serde::{Deserialize, Serialize};

use crate::domain::{ParseScopeError, Scope, Tenant, TenantId};
use crate::tenants::credential::Credential;
use crate::tenants::file::JsonFile;

/// Keys of one tenant at one time: the new one, and the old one until the next rotation.
const KEYS_MAX: usize = 2;

/// Why the list was not changed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeTenantsError {
    /// The file is not readable or writable.
    #[error("cannot use the tenants file `{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A tenant of this name is there.
    #[error("tenant `{0}` is there already: `toolcrib tenant rotate {0}` gives it a new key")]
    Exists(TenantId),
    /// No tenant of this name.
    #[error("there is no tenant `{0}`: `toolcrib tenant list` shows all")]
    Unknown(TenantId),
    /// A pattern is wrong.
    #[error(transparent)]
    Scope(#[from] ParseScopeError),
    /// Disk.
    #[error("cannot write the tenants file")]
    Write(#[from] io::Error),
}

/// A tenant's own limits; `None` takes the configured ones.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantLimits {
    /// Searches a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searches_per_minute: Option<u32>,
    /// Runs a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_per_minute: Option<u32>,
    /// Requests at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<usize>,
}

/// A tenant as `tenant list` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct TenantSummary {
    /// Its id.
    pub id: String,
    /// Ids of its keys, the newest last.
    pub keys: Vec<String>,
    /// Patterns of what it may use.
    pub scope: Vec<String>,
    /// Its own limits.
    pub limits: TenantLimits,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    tenants: Vec<StoredTenant>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredTenant {
    id: String,
    keys: Vec<StoredKey>,
    #[serde(default)]
    scope: Vec<String>,
    #[serde(default)]
    limits: TenantLimits,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoredKey {
    id: String,
    sha256: String,
}

/// All tenants, in a file that the command line changes while the server runs.
#[derive(Debug)]
pub struct Directory {
    file: JsonFile<Stored>,
}

impl Directory {
    /// The list in a file that need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self {
            file: JsonFile::new(path),
        }
    }

    /// Whether there is no tenant, so that a server on loopback runs open.
    pub fn is_empty(&self) -> Result<bool, ChangeTenantsError> {
        Ok(self.read()?.tenants.is_empty())
    }

    /// The tenant that a credential belongs to, with its own limits.
    ///
    /// All keys are compared, so that the time tells nothing about which of them exist.
    pub fn authenticate(
        &self,
        credential: &Credential,
    ) -> Result<Option<(Tenant, TenantLimits)>, ChangeTenantsError> {
        let stored = self.read()?;
        let mut found = None;
        for tenant in &stored.tenants {
            for key in &tenant.keys {
                let hash = STANDARD.decode(&key.sha256).unwrap_or_default();
                if credential.matches(&hash) && key.id == credential.key_id() {
                    found = Some(tenant);
                }
            }
        }
        let Some(tenant) = found else {
            return Ok(None);
        };
        let Ok(id) = tenant.id.parse() else {
            return Ok(None);
        };
        let scope = Scope::new(&tenant.scope)?;
        Ok(Some((Tenant { id, scope }, tenant.limits)))
    }

    /// Adds a tenant and gives its first key, which is shown once.
    pub fn add(
        &self,
        id: &TenantId,
        scope: &[String],
        limits: TenantLimits,
        rng: &mut dyn RngCore,
    ) -> Result<Credential, ChangeTenantsError> {
        Scope::new(scope)?;
        let credential = Credential::generate(rng);
        self.file.change(|stored| {
            if stored.tenants.iter().any(|tenant| tenant.id == id.as_str()) {
                return Err(ChangeTenantsError::Exists(id.clone()));
            }
            stored.version = 1;
            stored.tenants.push(StoredTenant {
                id: id.to_string(),
                keys: vec![StoredKey::of(&credential)],
                scope: scope.to_vec(),
                limits,
            });
            Ok(())
        })?;
        Ok(credential)
    }

    /// Gives a tenant a new key. The one before stays good until the next rotation, or not at all
    /// with `drop_old`.
    pub fn rotate(
        &self,
        id: &TenantId,
        drop_old: bool,
        rng: &mut dyn RngCore,
    ) -> Result<Credential, ChangeTenantsError> {
        let credential = Credential::generate(rng);
        self.file.change(|stored| {
            let tenant = stored
                .tenants
                .iter_mut()
                .find(|tenant| tenant.id == id.as_str());
            let tenant = tenant.ok_or_else(|| ChangeTenantsError::Unknown(id.clone()))?;
            let keep = if drop_old { 0 } else { KEYS_MAX - 1 };
            let surplus = tenant.keys.len().saturating_sub(keep);
            tenant.keys.drain(..surplus);
            tenant.keys.push(StoredKey::of(&credential));
            Ok::<_, ChangeTenantsError>(())
        })?;
        Ok(credential)
    }

    /// Removes a tenant; its keys end at once.
    pub fn remove(&self, id: &TenantId) -> Result<(), ChangeTenantsError> {
        self.file.change(|stored| {
            let before = stored.tenants.len();
            stored.tenants.retain(|tenant| tenant.id != id.as_str());
            match stored.tenants.len() == before {
                true => Err(ChangeTenantsError::Unknown(id.clone())),
                false => Ok(()),
            }
        })
    }

    /// All tenants in the order in which they were added.
    pub fn list(&self) -> Result<Vec<TenantSummary>, ChangeTenantsError> {
        let stored = self.read()?;
        let summary = |tenant: &StoredTenant| TenantSummary {
            id: tenant.id.clone(),
            keys: tenant.keys.iter().map(|key| key.id.clone()).collect(),
            scope: tenant.scope.clone(),
            limits: tenant.limits,
        };
        Ok(stored.tenants.iter().map(summary).collect())
    }

    fn read(&self) -> Result<std::sync::Arc<Stored>, ChangeTenantsError> {
        self.file.read().map_err(|source| ChangeTenantsError::File {
            path: self.file.path().to_owned(),
            source,
        })
    }
}

impl StoredKey {
    fn of(credential: &Credential) -> Self {
        Self {
            id: credential.key_id().to_owned(),
            sha256: STANDARD.encode(credential.hash()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn keys_come_two_at_a_time_and_end_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::new(folder.path().join("tenants.json"));
        let mut rng = StdRng::seed_from_u64(1);
        let acme: TenantId = "acme".parse().unwrap();
        assert!(directory.is_empty().unwrap());
        let scope = ["slack".to_owned()];
        let first = directory
            .add(&acme, &scope, TenantLimits::default(), &mut rng)
            .unwrap();
        let is_in = |credential| directory.authenticate(credential).unwrap().is_some();
        assert!(is_in(&first));
        let again = directory.add(&acme, &[], TenantLimits::default(), &mut rng);
        assert!(matches!(again, Err(ChangeTenantsError::Exists(_))));
        let second = directory.rotate(&acme, false, &mut rng).unwrap();
        assert!(is_in(&first) && is_in(&second));
        let third = directory.rotate(&acme, false, &mut rng).unwrap();
        assert!(!is_in(&first) && is_in(&second) && is_in(&third));
        let fourth = directory.rotate(&acme, true, &mut rng).unwrap();
        assert!(!is_in(&third) && is_in(&fourth));
        let (tenant, _) = directory.authenticate(&fourth).unwrap().unwrap();
        assert!(!tenant.scope.allows(&"github/x".parse().unwrap()));
        directory.remove(&acme).unwrap();
        assert!(!is_in(&fourth));
    }

    #[test]
    fn a_right_secret_under_a_wrong_key_id_is_refused_and_no_secret_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tenants.json");
        let directory = Directory::new(path.clone());
        let mut rng = StdRng::seed_from_u64(1);
        let limits = TenantLimits::default();
        let key = directory
            .add(&"a".parse().unwrap(), &[], limits, &mut rng)
            .unwrap();
        let (_, secret) = key
            .reveal_bearer()
            .split_once('.')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let forged: Credential = format!("other.{secret}").parse().unwrap();
        assert!(directory.authenticate(&forged).unwrap().is_none());
        assert!(!std::fs::read_to_string(path).unwrap().contains(&secret));
    }
}
