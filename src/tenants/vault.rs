//! Secrets, encrypted at rest, and configuration values of each tenant.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use rand::RngCore;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::domain::{ReadSettingError, SettingName, Settings, TenantId};
use crate::tenants::file::{JsonFile, write_private};

/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a nonce of `XChaCha20`.
const NONCE_BYTES: usize = 24;
/// Shortest passphrase in `TOOLCRIB_KEY`, in characters.
const KEY_CHARS_MIN: usize = 16;

/// Why the vault cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenVaultError {
    /// The key file is not readable or writable.
    #[error("cannot use the key file `{}`: make it readable, or set TOOLCRIB_KEY", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Too easy to guess.
    #[error("TOOLCRIB_KEY has {chars} characters: give at least {KEY_CHARS_MIN} random ones")]
    ShortKey {
        /// Its length.
        chars: usize,
    },
}

/// Why a setting was not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeSettingError {
    /// Empty, too long, or with a zero byte.
    #[error("value of `{name}` {problem}")]
    Value {
        /// The setting.
        name: SettingName,
        /// What is wrong.
        problem: &'static str,
    },
    /// Not set.
    #[error("`{name}` is not set for tenant `{tenant}`")]
    Unknown {
        /// The setting.
        name: SettingName,
        /// The tenant.
        tenant: TenantId,
    },
    /// Disk.
    #[error("cannot write the settings file")]
    Write(#[from] io::Error),
    /// Encryption.
    #[error("cannot encrypt")]
    Encrypt,
}

/// Stored secrets that another key encrypted, or that were tampered with.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cannot decrypt: the key is another one, or the file was changed; set the secret again")]
struct DecryptError;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    tenants: BTreeMap<String, StoredSettings>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct StoredSettings {
    /// Nonce and ciphertext in Base64.
    secrets: BTreeMap<String, String>,
    config: BTreeMap<String, String>,
}

/// What tenants have set. Secrets are sealed with XChaCha20-Poly1305 and bound to tenant and name,
/// so that a value moved to another place in the file does not open.
pub struct Vault {
    file: JsonFile<Stored>,
    cipher: XChaCha20Poly1305,
}

impl Vault {
    /// Opens the vault under `TOOLCRIB_KEY` if given, else under the key file, which is made on
    /// first use.
    pub fn open(
        path: PathBuf,
        key_file: &Path,
        key: Option<&SecretString>,
        rng: &mut dyn RngCore,
    ) -> Result<Self, OpenVaultError> {
        let key = match key {
            Some(text) => derive(text.expose_secret())?,
            None => read_or_make_key(key_file, rng).map_err(|source| OpenVaultError::KeyFile {
                path: key_file.to_owned(),
                source,
            })?,
        };
        Ok(Self {
            file: JsonFile::new(path),
            cipher: XChaCha20Poly1305::new(&key),
        })
    }

    /// Stores a secret.
    pub fn set_secret(
        &self,
        tenant: &TenantId,
        name: &SettingName,
        value: &SecretString,
        rng: &mut dyn RngCore,
    ) -> Result<(), ChangeSettingError> {
        let value = value.expose_secret();
        check_value(name, value)?;
        let mut nonce = [0; NONCE_BYTES];
        rng.fill_bytes(&mut nonce);
        let binding = binding(tenant, name);
        let payload = Payload {
            msg: value.as_bytes(),
            aad: binding.as_bytes(),
        };
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(&nonce), payload)
            .map_err(|_opaque| ChangeSettingError::Encrypt)?;
        let text = STANDARD.encode([&nonce[..], &sealed].concat());
        self.change(tenant, |settings| {
            settings.config.remove(name.as_str());
            settings.secrets.insert(name.to_string(), text);
        })
    }

    /// Stores a configuration value, in plain text.
    pub fn set_config(
        &self,
        tenant: &TenantId,
        name: &SettingName,
        value: &str,
    ) -> Result<(), ChangeSettingError> {
        check_value(name, value)?;
        self.change(tenant, |settings| {
            settings.secrets.remove(name.as_str());
            settings.config.insert(name.to_string(), value.to_owned());
        })
    }

    /// Removes a setting of either kind.
    pub fn remove(&self, tenant: &TenantId, name: &SettingName) -> Result<(), ChangeSettingError> {
        let unknown = || ChangeSettingError::Unknown {
            name: name.clone(),
            tenant: tenant.clone(),
        };
        self.file.change(|stored| {
            let settings = stored
                .tenants
                .get_mut(tenant.as_str())
                .ok_or_else(unknown)?;
            let secret = settings.secrets.remove(name.as_str()).is_some();
            let config = settings.config.remove(name.as_str()).is_some();
            if secret || config {
                Ok(())
            } else {
                Err(unknown())
            }
        })
    }

    /// Names of the secrets of a tenant, sorted.
    pub fn secrets(&self, tenant: &TenantId) -> io::Result<Vec<String>> {
        let stored = self.file.read()?;
        let settings = stored.tenants.get(tenant.as_str());
        Ok(settings
            .map(|settings| settings.secrets.keys().cloned().collect())
            .unwrap_or_default())
    }

    /// Configuration values of a tenant, sorted by name.
    pub fn configs(&self, tenant: &TenantId) -> io::Result<BTreeMap<String, String>> {
        let stored = self.file.read()?;
        let settings = stored.tenants.get(tenant.as_str());
        Ok(settings
            .map(|settings| settings.config.clone())
            .unwrap_or_default())
    }

    fn change(
        &self,
        tenant: &TenantId,
        change: impl FnOnce(&mut StoredSettings),
    ) -> Result<(), ChangeSettingError> {
        self.file.change(|stored| {
            stored.version = 1;
            change(stored.tenants.entry(tenant.to_string()).or_default());
            Ok(())
        })
    }

    fn decrypt(
        &self,
        tenant: &TenantId,
        name: &SettingName,
        text: &str,
    ) -> Result<SecretString, DecryptError> {
        let bytes = STANDARD.decode(text).map_err(|_opaque| DecryptError)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES).ok_or(DecryptError)?;
        let binding = binding(tenant, name);
        let payload = Payload {
            msg: sealed,
            aad: binding.as_bytes(),
        };
        let plain = self
            .cipher
            .decrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_opaque| DecryptError)?;
        Ok(String::from_utf8(plain)
            .map_err(|_opaque| DecryptError)?
            .into())
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault")
            .field("path", &self.file.path())
            .finish_non_exhaustive()
    }
}

impl Settings for Vault {
    fn secret(
        &self,
        tenant: &TenantId,
        name: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError> {
        let wrong = |source: Box<dyn std::error::Error + Send + Sync>| ReadSettingError {
            name: name.clone(),
            source,
        };
        let stored = self.file.read().map_err(|error| wrong(Box::new(error)))?;
        let settings = stored.tenants.get(tenant.as_str());
        let Some(text) = settings.and_then(|settings| settings.secrets.get(name.as_str())) else {
            return Ok(None);
        };
        let secret = self
            .decrypt(tenant, name, text)
            .map_err(|error| wrong(Box::new(error)))?;
        Ok(Some(secret))
    }

    fn has_secret(&self, tenant: &TenantId, name: &SettingName) -> bool {
        let stored = self.file.read().unwrap_or_default();
        let settings = stored.tenants.get(tenant.as_str());
        settings.is_some_and(|settings| settings.secrets.contains_key(name.as_str()))
    }

    fn config(&self, tenant: &TenantId, name: &SettingName) -> Option<String> {
        let stored = self.file.read().unwrap_or_default();
        stored
            .tenants
            .get(tenant.as_str())?
            .config
            .get(name.as_str())
            .cloned()
    }
}

fn binding(tenant: &TenantId, name: &SettingName) -> String {
    // Neither alphabet holds a space.
    format!("{tenant} {name}")
}

fn check_value(name: &SettingName, value: &str) -> Result<(), ChangeSettingError> {
    let problem = match value {
        "" => "is empty",
        value if VALUE_BYTES_MAX < value.len() => "is over 64 KiB",
        value if value.contains('\0') => "holds a zero byte",
        _ => return Ok(()),
    };
    Err(ChangeSettingError::Value {
        name: name.clone(),
        problem,
    })
}

/// A key of 32 bytes in Base64 or hexadecimal is taken as it is; other text is hashed.
fn derive(text: &str) -> Result<Key, OpenVaultError> {
    let text = text.trim();
    let chars = text.chars().count();
    if chars < KEY_CHARS_MIN {
        return Err(OpenVaultError::ShortKey { chars });
    }
    let decoded = STANDARD.decode(text).ok().filter(|bytes| bytes.len() == 32);
    let bytes = decoded.unwrap_or_else(|| Sha256::digest(text.as_bytes()).to_vec());
    Ok(*Key::from_slice(&bytes))
}

fn read_or_make_key(path: &Path, rng: &mut dyn RngCore) -> io::Result<Key> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let bytes = STANDARD.decode(text.trim()).map_err(io::Error::other)?;
            let bytes: [u8; 32] = bytes
                .try_into()
                .map_err(|_wrong_length| io::Error::other("not a key of 32 bytes"))?;
            Ok(bytes.into())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            rng.fill_bytes(&mut bytes);
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            write_private(path, STANDARD.encode(bytes).as_bytes())?;
            Ok(bytes.into())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn open(folder: &Path, key: Option<&str>) -> Vault {
        let key = key.map(SecretString::from);
        let mut rng = StdRng::seed_from_u64(3);
        Vault::open(
            folder.join("settings.json"),
            &folder.join("key"),
            key.as_ref(),
            &mut rng,
        )
        .unwrap()
    }

    #[test]
    fn a_secret_comes_back_to_its_tenant_alone_and_is_not_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
        let name: SettingName = "slack.bot_token".parse().unwrap();
        let vault = open(folder.path(), None);
        let secret = SecretString::from("xoxb-canary");
        vault
            .set_secret(&a, &name, &secret, &mut StdRng::seed_from_u64(1))
            .unwrap();
        let again = open(folder.path(), None);
        assert_eq!(
            again.secret(&a, &name).unwrap().unwrap().expose_secret(),
            "xoxb-canary"
        );
        assert!(again.has_secret(&a, &name) && !again.has_secret(&b, &name));
        assert!(again.secret(&b, &name).unwrap().is_none());
        let stored = fs::read_to_string(folder.path().join("settings.json")).unwrap();
        assert!(!stored.contains("canary"));
    }

    #[test]
    fn a_wrong_key_and_a_moved_value_do_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let a = "a".parse().unwrap();
        let (one, two): (SettingName, SettingName) =
            ("s.one".parse().unwrap(), "s.two".parse().unwrap());
        let vault = open(folder.path(), Some("a long enough passphrase"));
        let mut rng = StdRng::seed_from_u64(1);
        vault
            .set_secret(&a, &one, &SecretString::from("1"), &mut rng)
            .unwrap();
        assert!(
            open(folder.path(), Some("another long passphrase"))
                .secret(&a, &one)
                .is_err()
        );
        let path = folder.path().join("settings.json");
        let moved = fs::read_to_string(&path).unwrap().replace("s.one", "s.two");
        fs::write(&path, moved).unwrap();
        assert!(vault.secret(&a, &two).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn files_are_readable_by_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let vault = open(folder.path(), None);
        vault
            .set_config(&"a".parse().unwrap(), &"x.y".parse().unwrap(), "v")
            .unwrap();
        for name in ["key", "settings.json"] {
            let mode = fs::metadata(folder.path().join(name))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let vault = open(folder.path(), None);
        let (a, name) = ("a".parse().unwrap(), "x.y".parse().unwrap());
        let long = "x".repeat(VALUE_BYTES_MAX);
        assert!(vault.set_config(&a, &name, &long).is_ok());
        for value in ["", "a\0b", &format!("{long}x")] {
            assert!(vault.set_config(&a, &name, value).is_err());
        }
    }
}
