//! Where the service of a document is, and the credentials that it asks for.

use reqwest::Url;
use serde_json::Value;

use crate::catalog::import::openapi::resolver::Resolver;
use crate::catalog::import::source::{entries, items, scalar, text};
use crate::domain::{ConfigSlot, SecretSlot, ServerName, SettingName, Template, clean_line};

/// Longest description of a setting kept, in characters.
const DESCRIPTION_MAX: usize = 500;
/// Most characters of a setting's own part of its name.
const SETTING_CHARS_MAX: usize = 31;

/// What a document says of its service.
pub(super) struct Service {
    pub(super) base_url: Template,
    pub(super) headers: Vec<(Box<str>, Template)>,
    pub(super) secrets: Vec<SecretSlot>,
    pub(super) config: Vec<ConfigSlot>,
    pub(super) notes: Vec<String>,
}

/// Reads `servers` and the security schemes. `file` is where the document comes from: a relative
/// address is behind that.
pub(super) fn read(file: &str, document: &Value, name: &ServerName) -> Service {
    let mut service = Service {
        base_url: Template::default(),
        headers: Vec::new(),
        secrets: Vec::new(),
        config: Vec::new(),
        notes: Vec::new(),
    };
    service.read_address(file, document, name);
    service.read_security(document, name);
    service
}

impl Service {
    fn read_address(&mut self, file: &str, document: &Value, name: &ServerName) {
        let first = items(document, "servers").first().unwrap_or(&Value::Null);
        let url = text(first, &["url"]).trim_end_matches('/');
        if let Some(template) = self.address(file, first, url, name) {
            self.base_url = template;
            return;
        }
        // Nobody knows where it is but the one who runs it.
        self.config.clear();
        let path = match url.starts_with('/') && !url.contains(['{', '}', ' ']) {
            true => url,
            false => "",
        };
        let setting = setting(name, "base_url");
        let written = setting
            .as_ref()
            .map(|setting| format!("{{{{{setting}}}}}{path}"));
        let template = written.and_then(|written| written.parse().ok());
        if let (Some(template), Some(setting)) = (template, setting) {
            self.base_url = template;
            self.config.push(ConfigSlot {
                name: setting,
                description: "Address of the service, such as `https://api.example`.".into(),
                default: None,
                optional: false,
            });
        }
    }

    /// The address as the document gives it, its variables as settings with defaults.
    fn address(
        &mut self,
        file: &str,
        server: &Value,
        url: &str,
        name: &ServerName,
    ) -> Option<Template> {
        let mut written = match Url::parse(file) {
            // Braces would be encoded by the join, and a local path has no host to be behind.
            Ok(base) if base.has_host() && !url.contains(['{', ':']) && !url.is_empty() => {
                let joined = base.join(url).ok()?;
                joined.as_str().trim_end_matches('/').to_owned()
            }
            _ => url.to_owned(),
        };
        if !written.starts_with("https://") && !written.starts_with("http://") {
            return None;
        }
        for (variable, about) in entries(server, "variables") {
            let held = format!("{{{variable}}}");
            if !written.contains(&held) {
                continue;
            }
            let setting = setting(name, variable)?;
            written = written.replace(&held, &format!("{{{{{setting}}}}}"));
            self.config.push(ConfigSlot {
                name: setting,
                description: clean_line(text(about, &["description"]), DESCRIPTION_MAX).into(),
                default: scalar(&about["default"]).and_then(|text| text.parse().ok()),
                optional: false,
            });
        }
        // What is left of single braces names nothing.
        let bare = written.replace("{{", "").replace("}}", "");
        match bare.contains(['{', '}']) {
            true => None,
            false => written.parse().ok(),
        }
    }

    /// A header for each scheme that has one: those that every operation asks for first.
    fn read_security(&mut self, document: &Value, name: &ServerName) {
        let resolver = Resolver::new(document);
        let demands = items(document, "security");
        let (mut needed, mut any): (Vec<&String>, Vec<&String>) = (Vec::new(), Vec::new());
        for (at, demand) in demands.iter().enumerate() {
            let schemes = demand.as_object().into_iter().flatten().map(|(key, _)| key);
            match at {
                0 => needed.extend(schemes),
                _ => any.extend(schemes),
            }
        }
        // `{}` among the demands says that none is needed.
        let is_open = demands
            .iter()
            .any(|demand| demand.as_object().is_some_and(serde_json::Map::is_empty));
        let all = entries(&document["components"], "securitySchemes");
        let all: Vec<(&String, &Value)> = all.collect();
        let rest = all.iter().map(|(scheme, _)| *scheme);
        let ordered: Vec<&String> = needed.iter().copied().chain(any).chain(rest).collect();
        for scheme in ordered {
            let found = all.iter().find(|(key, _)| *key == scheme);
            let Some((_, about)) = found else {
                continue;
            };
            let is_needed = needed.contains(&scheme) && !is_open;
            self.read_scheme(scheme, resolver.target(about, 0), (name, is_needed));
        }
    }

    fn read_scheme(&mut self, scheme: &str, about: &Value, (name, needed): (&ServerName, bool)) {
        let kind = text(about, &["type"]);
        let (header, before) = match (kind, text(about, &["scheme"]).to_ascii_lowercase().as_str())
        {
            ("http", "basic") => ("Authorization", "Basic "),
            ("http", "bearer") | ("oauth2" | "openIdConnect", _) => ("Authorization", "Bearer "),
            ("apiKey", _) if text(about, &["in"]) == "header" => (text(about, &["name"]), ""),
            _ => {
                let place = text(about, &["in"]);
                let why = match place {
                    "" => format!("the security scheme `{scheme}` of type `{kind}` is not sent"),
                    place => format!("the key of `{scheme}` goes in the {place} and is not sent"),
                };
                if !self.notes.contains(&why) {
                    self.notes.push(why);
                }
                return;
            }
        };
        let taken = self
            .headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(header));
        let fits = !header.is_empty() && http::HeaderName::try_from(header).is_ok();
        let Some(setting) = setting(name, scheme).filter(|_| fits && !taken) else {
            return;
        };
        let Ok(template) = format!("{before}{{{{secret:{setting}}}}}").parse() else {
            return;
        };
        let described = match (text(about, &["description"]), before) {
            ("", "Basic ") => "`user:password` in base64",
            (said, _) => said,
        };
        self.headers.push((header.into(), template));
        self.secrets.push(SecretSlot {
            name: setting,
            description: clean_line(described, DESCRIPTION_MAX).into(),
            optional: !needed,
        });
    }
}

/// `server.part`, the part in letters that a setting may have.
fn setting(server: &ServerName, part: &str) -> Option<SettingName> {
    let fits = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
        true => c.to_ascii_lowercase(),
        false => '_',
    };
    let part: String = part.chars().take(SETTING_CHARS_MAX).map(fits).collect();
    format!("{server}.{part}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(file: &str, document: &Value, expected: &str) {
        let service = read(file, document, &"api".parse().unwrap());
        let headers = service
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        let secrets = service.secrets.iter();
        let secrets =
            secrets.map(|slot| format!("{}{}", slot.name, if slot.optional { "?" } else { "" }));
        let config = service.config.iter().map(|slot| match &slot.default {
            Some(default) => format!("{}={default}", slot.name),
            None => slot.name.to_string(),
        });
        let lines = std::iter::once(service.base_url.to_string())
            .chain(headers)
            .chain(secrets)
            .chain(config)
            .chain(service.notes);
        assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected, "{document}");
    }

    #[test]
    fn the_address_is_the_first_one_or_the_operators() {
        let at = |url: &str| json!({"servers": [{"url": url}, {"url": "https://b.example"}]});
        check(
            "a.json",
            &at("https://a.example/v1/"),
            "https://a.example/v1",
        );
        check("a.json", &at("/v2"), "{{api.base_url}}/v2\napi.base_url");
        check(
            "https://docs.example/x/openapi.json",
            &at("/v2"),
            "https://docs.example/v2",
        );
        check("a.json", &json!({}), "{{api.base_url}}\napi.base_url");
        check(
            "a.json",
            &at("https://{zone}.example"),
            "{{api.base_url}}\napi.base_url",
        );
        let with_variables = json!({"servers": [{"url": "https://{zone}.example/{unused",
            "variables": {"zone": {"default": "eu"}}}]});
        check("a.json", &with_variables, "{{api.base_url}}\napi.base_url");
        let with_variables = json!({"servers": [{"url": "https://{zone}.example/v1",
            "variables": {"zone": {"default": "eu"}}}]});
        check(
            "a.json",
            &with_variables,
            "https://{{api.zone}}.example/v1\napi.zone=eu",
        );
    }

    #[test]
    fn credentials_are_headers_with_secrets() {
        let schemes = json!({
            "token": {"type": "http", "scheme": "Bearer"},
            "login": {"type": "http", "scheme": "basic"},
            "App Key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "inUrl": {"type": "apiKey", "in": "query", "name": "key"},
        });
        let document = |security: Value| {
            json!({"servers": [{"url": "https://a.example"}], "security": security,
                "components": {"securitySchemes": schemes}})
        };
        check(
            "a.json",
            &document(json!([{"token": []}])),
            "https://a.example\n\
            Authorization: Bearer {{secret:api.token}}\nX-Key: {{secret:api.app_key}}\n\
            api.token\napi.app_key?\nthe key of `inUrl` goes in the query and is not sent",
        );
        check(
            "a.json",
            &document(json!([{"login": []}, {}])),
            "https://a.example\n\
            Authorization: Basic {{secret:api.login}}\nX-Key: {{secret:api.app_key}}\n\
            api.login?\napi.app_key?\nthe key of `inUrl` goes in the query and is not sent",
        );
    }
}
