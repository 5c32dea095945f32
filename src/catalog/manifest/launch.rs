//! The `[launch.*]` of a catalog file. What it starts is pinned to an exact version.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::manifest::section::Section;
use crate::domain::{
    Launch, Method, OAuth, Operation, OperationBody, OperationParts, Template, ToolName,
};

/// What to do about a version that is not exact.
const PIN: &str = "name an exact version, such as `package@1.2.3`";

/// Reads the one way to start a server.
pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Launch> {
    let stdio = section.section("stdio", read_stdio).flatten();
    let http = section.section("http", read_http).flatten();
    let docker = section.section("docker", read_docker).flatten();
    let openapi = section.section("openapi", read_openapi).flatten();
    let oauth = section.section("oauth", read_oauth).flatten();
    let ways = [stdio, http, docker, openapi];
    let mut ways: Vec<Launch> = ways.into_iter().flatten().collect();
    let given = ["stdio", "http", "docker", "openapi"]
        .iter()
        .filter(|key| section.has(key))
        .count();
    if given != 1 {
        let message = format!("`launch` holds {given} of `stdio`, `http`, `docker` and `openapi`");
        section.fault_at("stdio", message, "keep exactly one");
        return None;
    }
    if section.has("oauth") && !section.has("http") {
        let message = "`launch.oauth` goes with `launch.http` only";
        section.fault_at("oauth", message, "remove it");
    }
    let mut way = ways.pop()?;
    if let Launch::Http { oauth: place, .. } = &mut way {
        *place = oauth.map(Box::new);
    }
    Some(way)
}

fn read_stdio(section: &mut Section<'_, '_>) -> Option<Launch> {
    let command = section.text("command");
    let args: Vec<Template> = section.parsed_list("args");
    let env = section.parsed_map("env");
    let command = command?;
    let plain: Vec<String> = args.iter().map(ToString::to_string).collect();
    if let Some(package) = unpinned(&command, &plain) {
        section.fault_at(
            "args",
            format!("package `{package}` has no exact version"),
            PIN,
        );
    }
    Some(Launch::Stdio {
        command: command.into(),
        args,
        env,
    })
}

fn read_http(section: &mut Section<'_, '_>) -> Option<Launch> {
    let url: Option<Template> = section.parsed("url");
    let headers = section.parsed_map("headers");
    let transport = section.optional_parsed("transport").unwrap_or_default();
    let url = url?;
    check_url(section, "url", &url);
    Some(Launch::Http {
        url,
        headers,
        transport,
        oauth: None,
    })
}

fn check_url(section: &mut Section<'_, '_>, key: &'static str, url: &Template) {
    let text = url.to_string();
    if !text.starts_with("https://") && !text.starts_with("http://") && !text.starts_with("{{") {
        let message = format!("`{text}` is not an `https://` URL");
        section.fault_at(key, message, "write the whole URL of the endpoint");
    }
}

fn read_openapi(section: &mut Section<'_, '_>) -> Option<Launch> {
    let base_url: Option<Template> = section.parsed("base_url");
    let headers = section.parsed_map("headers");
    let operations = section.sections("operations", read_operation);
    let operations: BTreeMap<_, _> = operations.into_iter().flatten().collect();
    let base_url = base_url?;
    check_url(section, "base_url", &base_url);
    Some(Launch::OpenApi {
        base_url,
        headers,
        operations: Arc::new(operations),
    })
}

fn read_operation(section: &mut Section<'_, '_>) -> Option<(ToolName, Operation)> {
    let tool = section.parsed("tool");
    let method: Option<Method> = section.parsed("method");
    let path = section.text("path");
    let mut names = |key| -> Vec<Box<str>> {
        let names = section.texts(key);
        names.into_iter().map(Into::into).collect()
    };
    let (query, joined) = (names("query"), names("query_joined"));
    let headers = names("headers");
    let media_type = section.optional_text("media_type");
    let argument = section.optional_text("body");
    let operation = Operation::new(OperationParts {
        method: method?,
        path: path?.into(),
        query,
        joined,
        headers,
        body: media_type.map(|media_type| OperationBody {
            media_type: media_type.into(),
            argument: argument.map(Into::into),
        }),
    });
    match operation {
        Ok(operation) => Some((tool?, operation)),
        Err(error) => {
            section.fault_at("path", error.to_string(), "mend it, or leave it out");
            None
        }
    }
}

fn read_oauth(section: &mut Section<'_, '_>) -> Option<OAuth> {
    let token_url: Option<Template> = section.parsed("token_url");
    let client_id = section.parsed("client_id");
    let client_secret = section.parsed("client_secret");
    let scope = section.optional_parsed("scope");
    let resource = section.optional_parsed("resource");
    let auth = section.optional_parsed("auth").unwrap_or_default();
    let token_url = token_url?;
    check_url(section, "token_url", &token_url);
    let client_secret: Template = client_secret?;
    if client_secret.secrets().next().is_none() {
        let message = "`client_secret` holds no secret of the tenant's";
        let remedy = "write `{{secret:server.name}}` and declare it under `[[secrets]]`";
        section.fault_at("client_secret", message, remedy);
    }
    Some(OAuth {
        token_url,
        client_id: client_id?,
        client_secret,
        scope,
        resource,
        auth,
    })
}

fn read_docker(section: &mut Section<'_, '_>) -> Option<Launch> {
    let image = section.text("image");
    let args = section.parsed_list("args");
    let env = section.parsed_map("env");
    let image = image?;
    if !is_pinned_image(&image) {
        let message = format!("image `{image}` has no exact version");
        section.fault_at(
            "image",
            message,
            "name a tag other than `latest`, or a digest",
        );
    }
    Some(Launch::Docker {
        image: image.into(),
        args,
        env,
    })
}

/// What a launch starts without an exact version, if it does.
pub(in crate::catalog) fn unpinned_part(launch: &Launch) -> Option<String> {
    match launch {
        Launch::Stdio { command, args, .. } => {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            unpinned(command, &args)
        }
        Launch::Docker { image, .. } => (!is_pinned_image(image)).then(|| image.to_string()),
        Launch::Http { .. } | Launch::OpenApi { .. } => None,
    }
}

/// The first package of an `npx` or `uvx` command line that is not pinned.
fn unpinned(command: &str, args: &[String]) -> Option<String> {
    let mut rest = args.iter().map(String::as_str);
    let mut from_given = false;
    match command {
        "npx" => loop {
            match rest.next()? {
                "-y" | "--yes" => {}
                flag if flag.starts_with("--package=") => {
                    from_given = true;
                    let package = flag.trim_start_matches("--package=");
                    if !is_pinned_npm(package) {
                        return Some(package.to_owned());
                    }
                }
                package => {
                    let fine = from_given || is_pinned_npm(package);
                    return (!fine).then(|| package.to_owned());
                }
            }
        },
        "uvx" => loop {
            match rest.next()? {
                flag @ ("--with" | "--from") => {
                    let package = rest.next()?;
                    from_given |= flag == "--from";
                    if !is_pinned_pypi(package) {
                        return Some(package.to_owned());
                    }
                }
                "--python" => {
                    rest.next()?;
                }
                package => {
                    let fine = from_given || is_pinned_pypi(package);
                    return (!fine).then(|| package.to_owned());
                }
            }
        },
        _ => None,
    }
}

fn is_pinned_npm(package: &str) -> bool {
    // The first `@` of a scoped package belongs to its name.
    let version = package.char_indices().skip(1).find(|(_, c)| *c == '@');
    version.is_some_and(|(at, _)| is_exact(package.get(at + 1..).unwrap_or_default()))
}

fn is_pinned_pypi(package: &str) -> bool {
    let version = package.split_once("==").or_else(|| package.split_once('@'));
    version.is_some_and(|(_, version)| is_exact(version))
}

/// A version with a number in front and no range, wildcard or tag.
fn is_exact(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.contains('.')
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '!'))
        && version.split(['.', '-']).all(|part| part != "x")
}

fn is_pinned_image(image: &str) -> bool {
    // It would be read as an option of `docker run`.
    if image.starts_with('-') {
        return false;
    }
    if let Some((_, digest)) = image.split_once("@sha256:") {
        return digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    // A `:` before the last `/` belongs to a registry's port.
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':')
        .is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        let command = words.next().unwrap();
        let args: Vec<String> = words.collect();
        assert_eq!(unpinned(&command, &args).as_deref(), expected, "{line}");
    }

    #[test]
    fn only_exact_versions_are_pinned() {
        check("npx -y @scope/server@1.2.3 stdio", None);
        check("npx -y @scope/server stdio", Some("@scope/server"));
        check("npx -y server@latest", Some("server@latest"));
        check("npx -y server@^1.2.0", Some("server@^1.2.0"));
        check("npx -y --package=@eslint/mcp@0.3.13 mcp", None);
        check("uvx mcp-server-time@2026.10.19 --local-timezone UTC", None);
        check("uvx mcp-server-time", Some("mcp-server-time"));
        check("uvx --with mcp<2 server@1.0.0", Some("mcp<2"));
        check("uvx --from server==1.0.0 command", None);
        check("python3 server.py", None);
    }

    #[test]
    fn an_image_needs_a_tag_or_a_digest() {
        assert!(is_pinned_image("ghcr.io/a/b:1.2"));
        assert!(is_pinned_image(&format!("a/b@sha256:{}", "0".repeat(64))));
        assert!(!is_pinned_image("localhost:5000/a/b"));
        assert!(!is_pinned_image("a/b:latest"));
        assert!(!is_pinned_image("--volume=/:/host:1"));
    }
}
