//! The token endpoint: what is asked, and what its answers mean (RFC 6749, sections 4.4, 5 and 6).
//!
//! It is held to the rules of every URL: https, public addresses, limits on time and size.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::call::resolve::{Credentials, push_encoded};
use crate::call::upstream::body::read;
use crate::call::upstream::failure::chain;
use crate::call::upstream::http::{HttpError, checked_client};
use crate::call::upstream::mask::mask;
use crate::domain::{ClientAuth, clean_line};

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Longest request, from the look-up of the name to the last byte.
const REQUEST_MAX: Duration = Duration::from_secs(15);
/// A token is renewed after this time, whatever its endpoint says.
pub(super) const LIFE_MAX: Duration = Duration::from_hours(24);
/// Characters of an endpoint's own words that are shown.
const WORDS_MAX: usize = 200;

/// Why there is no access token. Clones share it among all who waited.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(in crate::call::upstream) enum GetTokenError {
    /// The endpoint's URL is not one that may be connected to.
    #[error("no access token: the token endpoint cannot be used: {0}")]
    Address(String),
    /// No answer.
    #[error("no access token: the token endpoint cannot be reached: {0}")]
    Unreachable(String),
    /// Too slow.
    #[error("no access token: the token endpoint gave no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It said no.
    #[error("no access token: the token endpoint answered HTTP {status}{words}")]
    Denied {
        /// With which status.
        status: u16,
        /// Its own words, cleaned and masked, a colon in front; may be empty.
        words: String,
    },
    /// Its answer holds no token.
    #[error("no access token: the answer of the token endpoint {0}")]
    Unreadable(String),
    /// The server does not take what the endpoint gives.
    #[error("HTTP 401: the server refuses access tokens that were issued just now")]
    Refused,
    /// The program is about to end.
    #[error("no access token: shutting down")]
    Stopped,
}

/// What an endpoint gave.
pub(super) struct Given {
    pub(super) access: SecretString,
    pub(super) life: Duration,
    pub(super) refresh: Option<SecretString>,
}

/// A token endpoint, and what one tenant shows it.
pub(super) struct Endpoint {
    credentials: Credentials,
    request_max: Duration,
    loopback: bool,
    /// What must not be shown of the above.
    secrets: [SecretString; 2],
}

impl Endpoint {
    /// `loopback` says whether it may be on this machine.
    pub(super) fn new(credentials: Credentials, connect_max: Duration, loopback: bool) -> Self {
        let secret = credentials.client_secret.clone();
        let basic = basic(
            credentials.client_id.expose_secret(),
            secret.expose_secret(),
        );
        Self {
            credentials,
            request_max: connect_max.min(REQUEST_MAX),
            loopback,
            secrets: [basic.into(), secret],
        }
    }

    /// By the credentials.
    pub(super) async fn get(&self) -> Result<Given, GetTokenError> {
        let mut form = vec![("grant_type", "client_credentials")];
        let scope = self.credentials.scope.as_deref();
        form.extend(scope.map(|scope| ("scope", scope)));
        self.ask(form).await
    }

    /// By a refresh token.
    pub(super) async fn refresh(&self, refresh: &SecretString) -> Result<Given, GetTokenError> {
        let form = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose_secret()),
        ];
        self.ask(form).await
    }

    /// The text without what is shown to the endpoint.
    pub(super) fn mask(&self, text: &str) -> String {
        mask(text, &self.secrets)
    }

    async fn ask(&self, form: Vec<(&str, &str)>) -> Result<Given, GetTokenError> {
        let asked = tokio::time::timeout(self.request_max, self.post(form)).await;
        asked.unwrap_or(Err(GetTokenError::Timeout(self.request_max)))
    }

    async fn post(&self, form: Vec<(&str, &str)>) -> Result<Given, GetTokenError> {
        let unreachable = |error: &(dyn std::error::Error + 'static)| {
            GetTokenError::Unreachable(self.mask(&chain(error)))
        };
        let request = self.request(form)?;
        let response = request.send().await;
        let response = response.map_err(|error| unreachable(&error.without_url()))?;
        let status = response.status();
        let body = read(response.bytes_stream(), ANSWER_BYTES_MAX).await;
        let body = body.map_err(|error| unreachable(&error))?;
        let body = body.ok_or_else(|| {
            let why = format!("is over the limit of {ANSWER_BYTES_MAX} bytes");
            GetTokenError::Unreadable(why)
        })?;
        self.understand(status, &body)
    }

    fn request<'a>(
        &'a self,
        mut form: Vec<(&'a str, &'a str)>,
    ) -> Result<reqwest::RequestBuilder, GetTokenError> {
        let credentials = &self.credentials;
        let unusable = |error: HttpError| GetTokenError::Address(self.mask(&chain(&error)));
        let (url, max) = (&credentials.token_url, self.request_max);
        let checked = checked_client(url, &[], max, self.loopback);
        let (url, client) = checked.map_err(unusable)?;
        form.extend(credentials.resource.as_deref().map(|r| ("resource", r)));
        let kind = "application/x-www-form-urlencoded";
        let request = client
            .post(url)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, kind);
        match credentials.auth {
            ClientAuth::Basic => {
                let [basic, _secret] = &self.secrets;
                let value = HeaderValue::try_from(format!("Basic {}", basic.expose_secret()));
                let mut value = value.map_err(|e| GetTokenError::Address(e.to_string()))?;
                value.set_sensitive(true);
                let request = request.header(header::AUTHORIZATION, value);
                Ok(request.body(encoded(&form)))
            }
            ClientAuth::Post => {
                form.extend([
                    ("client_id", credentials.client_id.expose_secret()),
                    ("client_secret", credentials.client_secret.expose_secret()),
                ]);
                Ok(request.body(encoded(&form)))
            }
        }
    }

    fn understand(&self, status: StatusCode, body: &[u8]) -> Result<Given, GetTokenError> {
        let answer: Option<Value> = serde_json::from_slice(body).ok();
        if !status.is_success() {
            let answer = answer.unwrap_or_default();
            let words: Vec<&str> = ["error", "error_description"]
                .iter()
                .filter_map(|key| answer.get(key)?.as_str())
                .collect();
            let words = self.mask(&clean_line(&words.join(": "), WORDS_MAX));
            return Err(GetTokenError::Denied {
                status: status.as_u16(),
                words: match words.is_empty() {
                    true => words,
                    false => format!(": {words}"),
                },
            });
        }
        let unreadable = |why: &str| GetTokenError::Unreadable(why.to_owned());
        let answer = answer.ok_or_else(|| unreadable("is no JSON"))?;
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(unreadable("is of a kind other than `Bearer`"));
        }
        let fits =
            |token: &&str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        let access = text("access_token").filter(fits);
        Ok(Given {
            access: access
                .ok_or_else(|| unreadable("holds no `access_token`"))?
                .into(),
            life: life(answer.get("expires_in")),
            refresh: text("refresh_token").filter(fits).map(Into::into),
        })
    }
}

/// `expires_in`, in seconds; some endpoints write it as text.
fn life(seconds: Option<&Value>) -> Duration {
    let seconds = match seconds {
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(number) => number.as_f64(),
        None => None,
    };
    // Not a number, and numbers that no duration has, count as unknown.
    let life = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    life.unwrap_or(LIFE_MAX).min(LIFE_MAX)
}

/// Id and secret as the header takes them (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let mut plain = String::new();
    push_encoded(&mut plain, id);
    plain.push(':');
    push_encoded(&mut plain, secret);
    STANDARD.encode(plain)
}

/// The fields as a form.
fn encoded(fields: &[(&str, &str)]) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        if !form.is_empty() {
            form.push('&');
        }
        push_encoded(&mut form, name);
        form.push('=');
        push_encoded(&mut form, value);
    }
    form
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn endpoint() -> Endpoint {
        let credentials = Credentials {
            token_url: "https://id.example/token".to_owned(),
            client_id: "harbour".into(),
            client_secret: "canary-4711".into(),
            scope: None,
            resource: None,
            auth: ClientAuth::Basic,
        };
        Endpoint::new(credentials, Duration::from_secs(1), false)
    }

    #[test]
    fn an_answer_is_a_token_or_says_why_it_is_none() {
        let endpoint = endpoint();
        let check = |status: u16, body: &str, expected: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let found = match endpoint.understand(status, body.as_bytes()) {
                Ok(given) => {
                    let refresh = given.refresh.is_some();
                    let token = given.access.expose_secret().to_owned();
                    format!("{token} for {} s, refresh {refresh}", given.life.as_secs())
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{status} {body}");
        };
        let given = r#"{"access_token":"a.b","token_type":"bearer","expires_in":60}"#;
        check(200, given, "a.b for 60 s, refresh false");
        let text = r#"{"access_token":"a","expires_in":"60","refresh_token":"r"}"#;
        check(200, text, "a for 60 s, refresh true");
        for odd in ["-5", "1e300", "null", "\"soon\""] {
            let body = format!(r#"{{"access_token":"a","expires_in":{odd}}}"#);
            let seconds = if odd == "-5" { 0 } else { LIFE_MAX.as_secs() };
            check(200, &body, &format!("a for {seconds} s, refresh false"));
        }
        let start = "no access token: the answer of the token endpoint ";
        check(200, "<html>", &format!("{start}is no JSON"));
        check(200, "{}", &format!("{start}holds no `access_token`"));
        let broken = r#"{"access_token":"a\nb"}"#;
        check(200, broken, &format!("{start}holds no `access_token`"));
        let mac = r#"{"access_token":"a","token_type":"mac"}"#;
        check(
            200,
            mac,
            &format!("{start}is of a kind other than `Bearer`"),
        );
        let denied = r#"{"error":"invalid_client","error_description":"canary-4711\n is wrong"}"#;
        check(
            401,
            denied,
            "no access token: the token endpoint answered HTTP 401: invalid_client: [secret] is wrong",
        );
        check(
            502,
            "<html>",
            "no access token: the token endpoint answered HTTP 502",
        );
    }

    proptest! {
        #[test]
        fn no_answer_panics_and_no_token_breaks_a_header(body in "\\PC{0,60}", token in "\\PC{0,20}") {
            let endpoint = endpoint();
            let odd = json!({"access_token": token, "expires_in": body}).to_string();
            for body in [body, odd] {
                if let Ok(given) = endpoint.understand(StatusCode::OK, body.as_bytes()) {
                    let value = format!("Bearer {}", given.access.expose_secret());
                    prop_assert!(http::HeaderValue::try_from(value).is_ok());
                    prop_assert!(given.life <= LIFE_MAX);
                }
            }
        }

        #[test]
        fn a_form_reads_back(value in "\\PC{0,20}") {
            let form = encoded(&[("a", &value), ("b", "x")]);
            let url = reqwest::Url::parse(&format!("https://a.example/?{form}")).unwrap();
            let pairs: Vec<_> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(&pairs[0], &("a".to_owned(), value));
            prop_assert_eq!(&pairs[1].1, "x");
        }
    }
}
