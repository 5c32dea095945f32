//! From a foreign way to start a server to ours: placeholders become settings, values of secrets
//! stay behind, and what we cannot start is found but not run.

mod container;

use std::collections::HashMap;

use crate::catalog::import::NoteKind;
use crate::catalog::import::placeholder::{Piece, is_sample, is_secret, split};
use crate::catalog::manifest::unpinned_part;
use crate::domain::{
    ConfigSlot, HttpTransport, Launch, SecretSlot, Server, ServerName, SettingName, Template,
    clean_line,
};

/// Longest description of a setting kept, in characters.
const DESCRIPTION_MAX: usize = 500;
/// Most arguments, variables or headers of a launch.
const PARTS_MAX: usize = 256;
/// Longest part of a setting's name behind the server's, in characters.
const VARIABLE_MAX: usize = 31;

/// What a source says of a variable.
#[derive(Clone, Debug, Default)]
pub(super) struct Hint {
    /// Name of the setting, where the source has names of our kind.
    pub(super) slot: Option<SettingName>,
    pub(super) description: String,
    pub(super) required: Option<bool>,
    pub(super) secret: Option<bool>,
    pub(super) default: Option<String>,
}

/// Whose commands may be started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Commands {
    /// A published catalog: package runners and containers only.
    Runners,
    /// The operator's own client configuration: any program.
    Any,
}

/// Builds the launch of one server with its settings.
pub(super) struct Wiring {
    server: ServerName,
    commands: Commands,
    hints: HashMap<String, Hint>,
    secrets: Vec<SecretSlot>,
    config: Vec<ConfigSlot>,
    said: Vec<(NoteKind, String)>,
}

impl Wiring {
    pub(super) fn new(server: &ServerName, commands: Commands) -> Self {
        Self {
            server: server.clone(),
            commands,
            hints: HashMap::new(),
            secrets: Vec::new(),
            config: Vec::new(),
            said: Vec::new(),
        }
    }

    /// What is known of a variable, before it is used.
    pub(super) fn hint(&mut self, variable: &str, hint: Hint) {
        self.hints.entry(variable.to_owned()).or_insert(hint);
    }

    pub(super) fn say(&mut self, kind: NoteKind, why: impl Into<String>) {
        let why = why.into();
        if !self.said.iter().any(|(_, said)| *said == why) {
            self.said.push((kind, why));
        }
    }

    /// A command line with its environment.
    pub(super) fn stdio(
        &mut self,
        command: &str,
        args: &[String],
        env: &[(String, String)],
    ) -> Option<Launch> {
        let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
        if name == "docker" && args.first().is_some_and(|first| first == "run") {
            return self.docker_run(args.get(1..).unwrap_or_default(), env);
        }
        let known = matches!(command, "npx" | "uvx");
        if command.is_empty() || (self.commands == Commands::Runners && !known) {
            let shown = clean_line(command, 60);
            self.say(
                NoteKind::Noted,
                format!("`{shown}` is no package runner that we start: found but not run"),
            );
            return None;
        }
        let args = self.arguments(args)?;
        Some(Launch::Stdio {
            command: command.into(),
            args,
            env: self.variables(env)?,
        })
    }

    /// A container image; `volumes` of the source are not mounted.
    pub(super) fn image(
        &mut self,
        image: &str,
        args: &[String],
        env: &[(String, String)],
    ) -> Option<Launch> {
        let fits = !image.is_empty()
            && !image.starts_with('-')
            && !image.contains(|c: char| c.is_whitespace() || c == '{' || c == '$');
        if !fits {
            self.say(
                NoteKind::Noted,
                format!("`{image}` is no image: found but not run"),
            );
            return None;
        }
        let args = self.arguments(args)?;
        Some(Launch::Docker {
            image: image.into(),
            args,
            env: self.variables(env)?,
        })
    }

    /// A remote server, on either of the HTTP transports.
    pub(super) fn remote(
        &mut self,
        url: &str,
        transport: &str,
        headers: &[(String, String)],
    ) -> Option<Launch> {
        let transports = [
            "",
            "http",
            "sse",
            "streamable",
            "streamable-http",
            "streamablehttp",
            "streamable_http",
            "streamableHttp",
        ];
        if !transports.contains(&transport) {
            let why = "it speaks a transport that we do not: found but not run";
            self.say(NoteKind::Noted, why);
            return None;
        }
        if !url.starts_with("https://") && !url.starts_with("http://") {
            self.say(
                NoteKind::Noted,
                "its URL is not `https://`: found but not run",
            );
            return None;
        }
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let has_secret = query.split('&').any(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            is_secret(name) && !value.contains(['$', '{', '<'])
        });
        if has_secret {
            let why = "its URL holds the value of a secret, which is not taken over: not run";
            self.say(NoteKind::Repaired, why);
            return None;
        }
        let url_text = url;
        let url = self.visible(url)?;
        let mut pairs = Vec::new();
        for (name, value) in headers.iter().take(PARTS_MAX) {
            pairs.push((name.as_str().into(), self.guarded(name, value)?));
        }
        Some(Launch::Http {
            url,
            headers: pairs,
            transport: match speaks_sse(url_text, transport) {
                true => HttpTransport::Sse,
                false => HttpTransport::Streamable,
            },
            oauth: None,
        })
    }

    /// Puts launch and settings into the server and gives what is to be said about them.
    pub(super) fn finish(
        mut self,
        server: &mut Server,
        launch: Option<Launch>,
    ) -> Vec<(NoteKind, String)> {
        if let Some(what) = launch.as_ref().and_then(unpinned_part) {
            self.say(NoteKind::Noted, format!("`{what}` has no exact version"));
        }
        let used = |pick: fn(&Template) -> Vec<&SettingName>| -> Vec<SettingName> {
            let templates = launch.iter().flat_map(Launch::templates);
            templates.flat_map(pick).cloned().collect()
        };
        let secrets = used(|template| template.secrets().collect());
        let config = used(|template| template.config().collect());
        self.secrets.retain(|slot| secrets.contains(&slot.name));
        self.config.retain(|slot| config.contains(&slot.name));
        server.launch = launch;
        server.secrets = self.secrets;
        server.config = self.config;
        self.said
    }

    fn arguments(&mut self, args: &[String]) -> Option<Vec<Template>> {
        if PARTS_MAX < args.len() {
            self.say(
                NoteKind::Noted,
                format!("{} arguments are too many: not run", args.len()),
            );
            return None;
        }
        args.iter().map(|argument| self.visible(argument)).collect()
    }

    fn variables(&mut self, env: &[(String, String)]) -> Option<Vec<(Box<str>, Template)>> {
        let mut pairs: Vec<(Box<str>, Template)> = Vec::new();
        for (name, value) in env.iter().take(PARTS_MAX) {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.';
            if name.is_empty() || !name.chars().all(fits) {
                let why = format!("variable `{}` has no legal name", clean_line(name, 60));
                self.say(NoteKind::Repaired, why);
                continue;
            }
            if pairs.iter().any(|(known, _)| **known == **name) {
                continue;
            }
            pairs.push((name.as_str().into(), self.guarded(name, value)?));
        }
        Some(pairs)
    }

    /// A value that only the server sees: a secret may stand in it, its literal value may not.
    fn guarded(&mut self, name: &str, text: &str) -> Option<Template> {
        let pieces = self.split(text);
        let is_literal = pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
        let secret = self.hints.get(name).and_then(|hint| hint.secret);
        let secret = secret.unwrap_or_else(|| is_secret(name));
        if is_literal && (secret || is_sample(text)) {
            if secret && !text.is_empty() && !is_sample(text) {
                let why = format!("the value of `{name}` is a secret and was not taken over");
                self.say(NoteKind::Repaired, why);
            }
            let slot = self.slot(name, None, secret)?;
            return self.parsed(&slot);
        }
        let mut filled = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => filled.push_str(&text),
                Piece::Value {
                    name: inner,
                    default,
                } => {
                    let known = self.hints.get(&inner).and_then(|hint| hint.secret);
                    let inner_secret = known.unwrap_or_else(|| secret || is_secret(&inner));
                    filled.push_str(&self.slot(&inner, default, inner_secret)?);
                }
            }
        }
        self.parsed(&filled)
    }

    /// A value that process lists and logs show: no secret may stand in it.
    fn visible(&mut self, text: &str) -> Option<Template> {
        let mut filled = String::new();
        for piece in self.split(text) {
            match piece {
                Piece::Text(text) => filled.push_str(&text),
                Piece::Value { name, default } => {
                    let known = self.hints.get(&name).and_then(|hint| hint.secret);
                    if known.unwrap_or_else(|| is_secret(&name)) {
                        let why = format!(
                            "secret `{name}` stands in an argument or URL, which others can see: \
                             found but not run"
                        );
                        self.say(NoteKind::Noted, why);
                        return None;
                    }
                    filled.push_str(&self.slot(&name, default, false)?);
                }
            }
        }
        self.parsed(&filled)
    }

    fn split(&self, text: &str) -> Vec<Piece> {
        split(text, &|name| self.hints.contains_key(name))
    }

    fn parsed(&mut self, text: &str) -> Option<Template> {
        text.parse()
            .inspect_err(|error| {
                self.say(NoteKind::Noted, format!("{error}: found but not run"));
            })
            .ok()
    }

    /// The template text of a setting, declared on first use.
    fn slot(&mut self, variable: &str, default: Option<String>, secret: bool) -> Option<String> {
        let hint = self.hints.get(variable).cloned().unwrap_or_default();
        // A name without its server's in front would be shared by all servers.
        let own = hint
            .slot
            .filter(|slot| slot.as_str().contains('.'))
            .or_else(|| {
                let dotted = variable.contains('.').then(|| variable.parse().ok());
                dotted.flatten()
            });
        let name = match own {
            Some(name) => name,
            None => self.setting_name(variable)?,
        };
        let description = clean_line(&hint.description, DESCRIPTION_MAX).into_boxed_str();
        let optional = hint.required == Some(false);
        if secret {
            if !self.secrets.iter().any(|slot| slot.name == name) {
                self.secrets.push(SecretSlot {
                    name: name.clone(),
                    description,
                    optional,
                });
            }
            return Some(format!("{{{{secret:{name}}}}}"));
        }
        if !self.config.iter().any(|slot| slot.name == name) {
            let default = default.or(hint.default).filter(|text| !text.is_empty());
            // A default with braces would be read as a template of ours.
            let default = default.filter(|text| !text.contains("{{"));
            self.config.push(ConfigSlot {
                name: name.clone(),
                description,
                default: default.and_then(|text| text.parse().ok()),
                optional,
            });
        }
        Some(format!("{{{{{name}}}}}"))
    }

    fn setting_name(&self, variable: &str) -> Option<SettingName> {
        let mut lower = String::new();
        for character in variable.chars().flat_map(char::to_lowercase) {
            if character.is_ascii_alphanumeric() {
                lower.push(character);
            } else if !lower.is_empty() && !lower.ends_with('_') {
                lower.push('_');
            }
        }
        let short: String = lower.chars().take(VARIABLE_MAX).collect();
        let short = short.trim_end_matches('_');
        let short = if short.is_empty() { "value" } else { short };
        format!("{}.{short}", self.server).parse().ok()
    }
}

/// Whether a remote endpoint is one of the older HTTP transport. Where a server has another way as
/// well, that goes first.
pub(super) fn speaks_sse(url: &str, transport: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    let path = path.trim_end_matches('/');
    match transport {
        "sse" => !path.ends_with("/mcp"),
        _ => path.ends_with("/sse"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wired(command: &str, args: &[&str], env: &[(&str, &str)]) -> (Server, Vec<String>) {
        let mut server = Server::new("acme".parse().unwrap(), vec![]);
        let mut wiring = Wiring::new(&server.name, Commands::Runners);
        let args: Vec<String> = args.iter().map(|text| (*text).to_owned()).collect();
        let env: Vec<(String, String)> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let launch = wiring.stdio(command, &args, &env);
        let said = wiring.finish(&mut server, launch);
        assert_eq!(server.check_launch(), Ok(()));
        (server, said.into_iter().map(|(_, why)| why).collect())
    }

    #[test]
    fn placeholders_become_settings_and_literal_secrets_stay_behind() {
        let (server, said) = wired(
            "npx",
            &["-y", "@acme/mcp@1.0.0", "--root", "<root folder>"],
            &[
                ("ACME_TOKEN", "sk-live-1234"),
                ("ACME_TEAM", "${TEAM_ID}"),
                ("ACME_HOST", "https://acme.example"),
                ("AUTHORIZATION", "Bearer ${ACME_TOKEN}"),
            ],
        );
        insta::assert_snapshot!(format!("{:#}", crate::catalog::export::server_json(&server)["launch"]), @r#"
        {
          "stdio": {
            "command": "npx",
            "args": [
              "-y",
              "@acme/mcp@1.0.0",
              "--root",
              "{{acme.root_folder}}"
            ],
            "env": {
              "ACME_TOKEN": "{{secret:acme.acme_token}}",
              "ACME_TEAM": "{{acme.team_id}}",
              "ACME_HOST": "https://acme.example",
              "AUTHORIZATION": "Bearer {{secret:acme.acme_token}}"
            }
          }
        }
        "#);
        assert_eq!(
            said,
            ["the value of `ACME_TOKEN` is a secret and was not taken over"]
        );
    }

    #[test]
    fn docker_run_becomes_a_container_and_says_what_it_left_out() {
        let (server, said) = wired(
            "docker",
            &[
                "run",
                "-i",
                "--rm",
                "-e",
                "KEY",
                "-v",
                "/a:/b",
                "acme/mcp:1.2",
                "--x",
            ],
            &[("KEY", "${ACME_KEY}")],
        );
        let Some(Launch::Docker { image, args, env }) = &server.launch else {
            panic!("{:?}", server.launch)
        };
        assert_eq!((&**image, args.len(), env.len()), ("acme/mcp:1.2", 1, 1));
        assert_eq!(env[0].1.to_string(), "{{secret:acme.acme_key}}");
        assert_eq!(said, ["option `-v` of `docker run` was left out"]);
    }

    #[test]
    fn what_cannot_be_started_safely_is_not_started() {
        for (command, args, why) in [
            ("bash", vec!["-c", "x"], "`bash` is no package runner"),
            (
                "npx",
                vec!["a@1.0.0", "--key=${API_KEY}"],
                "secret `API_KEY` stands in an argument",
            ),
            (
                "docker",
                vec!["run", "--privileged", "a:1"],
                "option `--privileged`",
            ),
        ] {
            let (server, said) = wired(command, &args, &[]);
            assert!(server.launch.is_none());
            assert!(said[0].starts_with(why), "{said:?}");
        }
    }
}
