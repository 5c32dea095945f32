//! What a remote launch has beside URL and headers, as JSON in normal form.

use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::domain::{HttpTransport, OAuth, Template};

/// A remote launch, its URL and headers given. What is as usual is left out.
pub(super) fn remote_to_json(
    url: &Template,
    headers: &Map<String, Value>,
    transport: HttpTransport,
    oauth: Option<&OAuth>,
) -> Value {
    let mut http = json!({ "url": url.to_string(), "headers": headers });
    if transport != HttpTransport::default() {
        http["transport"] = transport.to_string().into();
    }
    let mut launch = json!({ "http": http });
    let Some(oauth) = oauth else {
        return launch;
    };
    let mut tokens = json!({
        "token_url": oauth.token_url.to_string(),
        "client_id": oauth.client_id.to_string(),
        "client_secret": oauth.client_secret.to_string(),
    });
    for (key, template) in [("scope", &oauth.scope), ("resource", &oauth.resource)] {
        if let Some(template) = template {
            tokens[key] = template.to_string().into();
        }
    }
    tokens["auth"] = oauth.auth.to_string().into();
    launch["oauth"] = tokens;
    launch
}

/// What [`remote_to_json`] wrote beside URL and headers; else the key that is wrong.
pub(super) fn read_remote(
    launch: &Value,
) -> Result<(HttpTransport, Option<Box<OAuth>>), &'static str> {
    let http = launch.get("http").unwrap_or(launch);
    let transport = optional(http, "transport")?.unwrap_or_default();
    let Some(oauth) = launch.get("oauth").filter(|oauth| !oauth.is_null()) else {
        return Ok((transport, None));
    };
    let oauth = OAuth {
        token_url: optional(oauth, "token_url")?.ok_or("token_url")?,
        client_id: optional(oauth, "client_id")?.ok_or("client_id")?,
        client_secret: optional(oauth, "client_secret")?.ok_or("client_secret")?,
        scope: optional(oauth, "scope")?,
        resource: optional(oauth, "resource")?,
        auth: optional(oauth, "auth")?.unwrap_or_default(),
    };
    Ok((transport, Some(Box::new(oauth))))
}

fn optional<T: FromStr>(json: &Value, key: &'static str) -> Result<Option<T>, &'static str> {
    match json.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => text.parse().map(Some).map_err(|_cause| key),
        Some(_other) => Err(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::snapshot::{server_from_json, server_to_json};
    use crate::catalog::{SourceFile, load};
    use crate::domain::Launch;

    const GOOD: &str = r#"
name = "files"
title = "Files"
description = "Reads and writes files."
category = "files"
[launch.http]
url = "https://files.example/sse"
transport = "sse"
[launch.oauth]
token_url = "https://id.example/token"
client_id = "{{secret:files.id}}"
client_secret = "{{secret:files.secret}}"
scope = "read write"
resource = "https://files.example/sse"
auth = "post"
[[secrets]]
name = "files.id"
description = "Who you are."
[[secrets]]
name = "files.secret"
description = "How that is proven."
[provenance]
source = "https://files.example"
license = "MIT"
[[tools]]
name = "read_file"
description = "Read a file."
arguments = [{ name = "path", type = "string", desc = "Path." }]
"#;

    fn faults(text: &str) -> String {
        let file = SourceFile {
            name: "files.toml".to_owned(),
            text: text.to_owned(),
        };
        let faults = load(&[vec![file]]).faults;
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn a_file_is_read_whole_and_comes_back_from_normal_form() {
        let file = SourceFile {
            name: "files.toml".to_owned(),
            text: GOOD.to_owned(),
        };
        let loaded = load(&[vec![file]]);
        assert_eq!(loaded.faults, []);
        let server = &loaded.catalog.servers()[0];
        let Some(Launch::Http {
            transport,
            oauth: Some(oauth),
            ..
        }) = &server.launch
        else {
            panic!("{:?}", server.launch);
        };
        assert_eq!(*transport, HttpTransport::Sse);
        assert_eq!(oauth.templates().count(), 5);
        let text = server_to_json(server).to_string();
        let back = server_from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(&back, &**server);
    }

    #[test]
    fn what_is_wrong_with_a_file_is_named() {
        let secret = GOOD
            .replace("read write", "{{secret:files.id}}")
            .replace("\"post\"", "\"none\"")
            .replace("\"sse\"", "\"ws\"")
            .replace("https://id.example", "ftp://id.example")
            .replace("client_id =", "client =");
        insta::assert_snapshot!(faults(&secret), @r#"
        files.toml:8: `launch.http.transport`: `ws` is neither `streamable` nor `sse`
            remedy: correct it as the message says
        files.toml:9: `launch.oauth.client_id` is missing
            remedy: add `client_id = "..."`
        files.toml:10: `ftp://id.example/token` is not an `https://` URL
            remedy: write the whole URL of the endpoint
        files.toml:11: unknown key `launch.oauth.client`
            remedy: did you mean `client_id`?
        files.toml:15: `launch.oauth.auth`: `none` is neither `basic` nor `post`
            remedy: correct it as the message says
        files.toml:16: `files.id` is declared under `secrets` and never used
            remedy: use it in the launch, or remove it
        files.toml:16: `files.secret` is declared under `secrets` and never used
            remedy: use it in the launch, or remove it
        "#);
        let visible = GOOD.replace("read write", "{{secret:files.id}}");
        insta::assert_snapshot!(faults(&visible), @"
        files.toml:6: secret `files.id` stands in an argument or URL, which process lists and logs show: pass it in `env` or `headers`
            remedy: move it to `env` or `headers`
        ");
        let fixed = GOOD.replace("\"{{secret:files.secret}}\"", "\"hunter2\"");
        insta::assert_snapshot!(faults(&fixed), @"
        files.toml:12: `client_secret` holds no secret of the tenant's
            remedy: write `{{secret:server.name}}` and declare it under `[[secrets]]`
        files.toml:16: `files.secret` is declared under `secrets` and never used
            remedy: use it in the launch, or remove it
        ");
        let header = "[launch.http]\nheaders = { authorization = \"Bearer x\" }";
        let twice = GOOD.replace("[launch.http]", header);
        insta::assert_snapshot!(faults(&twice), @"
        files.toml:6: `oauth` and a header `Authorization` exclude each other: each would set the other's
            remedy: remove one of the two
        ");
        let child = GOOD
            .replace("[launch.http]", "[launch.stdio]\ncommand = \"files\"")
            .replace(
                "url = \"https://files.example/sse\"\ntransport = \"sse\"\n",
                "",
            );
        insta::assert_snapshot!(faults(&child), @"
        files.toml:8: `launch.oauth` goes with `launch.http` only
            remedy: remove it
        files.toml:15: `files.id` is declared under `secrets` and never used
            remedy: use it in the launch, or remove it
        files.toml:15: `files.secret` is declared under `secrets` and never used
            remedy: use it in the launch, or remove it
        ");
    }

    #[test]
    fn a_key_that_is_wrong_is_named() {
        let tokens = |key: &str, value: Value| {
            let mut launch = json!({
                "http": {"url": "https://a.example/mcp"},
                "oauth": {
                    "token_url": "https://a.example/token",
                    "client_id": "id",
                    "client_secret": "{{secret:a.b}}",
                },
            });
            launch["oauth"][key] = value;
            read_remote(&launch).map(|(_, oauth)| oauth.is_some())
        };
        assert_eq!(tokens("auth", "post".into()), Ok(true));
        assert_eq!(tokens("auth", "none".into()), Err("auth"));
        assert_eq!(tokens("client_id", Value::Null), Err("client_id"));
        assert_eq!(tokens("scope", 7.into()), Err("scope"));
        let odd = json!({"http": {"url": "https://a.example", "transport": "ws"}});
        assert_eq!(read_remote(&odd), Err("transport"));
    }
}
