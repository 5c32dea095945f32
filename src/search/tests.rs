//! Search as a whole, on the keyword side; with a model where one is there.

use secrecy::SecretString;

use super::*;
use crate::domain::{
    ConfigSlot, Launch, ReadSettingError, Scope, SecretSlot, SettingName, TenantId,
};
use crate::handles::ALIVE_MAX;

/// A tenant's settings: what is in the list is set.
struct Set(Vec<&'static str>);

impl Settings for Set {
    fn secret(
        &self,
        _: &TenantId,
        name: &SettingName,
    ) -> Result<Option<SecretString>, ReadSettingError> {
        Ok(self.0.contains(&name.as_str()).then(|| "x".into()))
    }

    fn has_secret(&self, _: &TenantId, name: &SettingName) -> bool {
        self.0.contains(&name.as_str())
    }

    fn config(&self, _: &TenantId, name: &SettingName) -> Option<String> {
        self.0.contains(&name.as_str()).then(String::new)
    }
}

fn searcher(catalog: Arc<Catalog>, alive_max: usize, set: Vec<&'static str>) -> Searcher {
    let ranking = Ranking::default();
    let index = Index::keyword_only(catalog, &ranking);
    let handles = Arc::new(Handles::new(alive_max));
    let searcher = Searcher::new(None, handles, Arc::new(Set(set)), ranking);
    searcher.publish(Arc::new(index));
    searcher
}

async fn ids(searcher: &Searcher, tenant: &Tenant, query: &str) -> Vec<String> {
    let answer = searcher
        .search(tenant, &query.parse().unwrap())
        .await
        .unwrap();
    answer
        .picks
        .iter()
        .map(|pick| pick.id().to_string())
        .collect()
}

#[tokio::test]
async fn the_best_tool_comes_first() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let found = ids(
        &searcher,
        &Tenant::local(),
        "post a message to a slack channel",
    )
    .await;
    assert_eq!(
        found,
        ["slack/slack_post_message", "slack/slack_list_channels"]
    );
    assert_eq!(searcher.readiness(), Readiness::KeywordOnly { tools: 11 });
}

#[tokio::test]
async fn the_handle_covers_what_was_shown() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let tenant = Tenant::local();
    let query = "weather".parse().unwrap();
    let answer = searcher.search(&tenant, &query).await.unwrap();
    let grant = searcher.handles.take(&tenant.id, &answer.handle).unwrap();
    let shown: Vec<_> = answer
        .picks
        .iter()
        .map(|pick| (pick.id(), pick.tool().hash()))
        .collect();
    assert_eq!((grant.run_id, grant.tools), (answer.run_id, shown));
    assert_eq!(answer.degraded, Some(Degraded::ModelMissing));
}

#[tokio::test]
async fn a_tenant_sees_only_its_tools() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let scope = Scope::new(&["slack".into()]).unwrap();
    let tenant = Tenant {
        id: "a".parse().unwrap(),
        scope,
    };
    let found = ids(&searcher, &tenant, "create a github issue").await;
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|id| id.starts_with("slack/")));
    let answer = searcher
        .search(&tenant, &"x".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(answer.tools_total, 2);
    let nothing = Tenant {
        id: "b".parse().unwrap(),
        scope: Scope::new(&["nowhere".into()]).unwrap(),
    };
    let refused = searcher.search(&nothing, &"x".parse().unwrap()).await;
    assert!(matches!(refused, Err(SearchError::NoCandidates { .. })));
}

#[tokio::test]
async fn a_query_without_a_known_word_still_gets_tools() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let found = ids(&searcher, &Tenant::local(), "zzz qqq 42").await;
    assert_eq!(found.len(), 3);
}

#[tokio::test]
async fn a_tenant_at_its_limit_of_handles_is_told_when_to_come_back() {
    let searcher = searcher(sample::catalog(), 1, vec![]);
    let (tenant, query) = (Tenant::local(), "weather".parse().unwrap());
    searcher.search(&tenant, &query).await.unwrap();
    assert!(matches!(
        searcher.search(&tenant, &query).await,
        Err(SearchError::TooManyHandles { .. })
    ));
    assert!(searcher.explain(&tenant, &query).await.is_ok());
}

#[tokio::test]
async fn what_is_needed_and_not_set_is_named() {
    let mut server = Arc::unwrap_or_clone(sample::server("db", &[("query", "Run SQL")]));
    let secret = |name: &str, optional| SecretSlot {
        name: name.parse().unwrap(),
        description: Box::default(),
        optional,
    };
    let config = |name: &str, default: Option<&str>| ConfigSlot {
        name: name.parse().unwrap(),
        description: Box::default(),
        default: default.map(|text| text.parse().unwrap()),
        optional: false,
    };
    server.secrets = vec![
        secret("db.key", false),
        secret("db.set", false),
        secret("db.opt", true),
    ];
    server.config = vec![
        config("db.url", None),
        config("db.port", Some("1")),
        config("db.unused", None),
    ];
    let env = [
        "db.url",
        "db.port",
        "secret:db.key",
        "secret:db.set",
        "secret:db.opt",
    ];
    server.launch = Some(Launch::Stdio {
        command: "db".into(),
        args: vec![],
        env: env
            .map(|name| ("X".into(), format!("{{{{{name}}}}}").parse().unwrap()))
            .into(),
    });
    let catalog = Arc::new(Catalog::new([Arc::new(server)]).unwrap());
    let searcher = searcher(catalog, ALIVE_MAX, vec!["db.set"]);
    let query = "query".parse().unwrap();
    let answer = searcher.search(&Tenant::local(), &query).await.unwrap();
    let requires = &answer.picks[0].requires;
    assert_eq!(requires.secrets, ["db.key".parse().unwrap()]);
    assert_eq!(requires.config, ["db.url".parse().unwrap()]);
}

#[tokio::test]
async fn an_explanation_shows_the_picks_first_and_every_candidate() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let query = "sned a mesage".parse().unwrap();
    let explanation = searcher.explain(&Tenant::local(), &query).await.unwrap();
    assert_eq!(explanation.read_as, "send a message");
    let picks: Vec<_> = explanation
        .rows
        .iter()
        .take(3)
        .map(|row| row.pick)
        .collect();
    assert_eq!(
        explanation.rows[0].id.to_string(),
        "slack/slack_post_message"
    );
    assert_eq!(picks[0], Some(1));
    assert_eq!(explanation.rows[0].matched, ["send:t", "messag:nt"]);
    assert!(explanation.to_string().contains("send a message"));
}

#[tokio::test]
async fn an_empty_catalog_has_nothing_to_offer() {
    let searcher = searcher(Arc::default(), ALIVE_MAX, vec![]);
    assert_eq!(searcher.readiness(), Readiness::Empty);
    let refused = searcher
        .search(&Tenant::local(), &"x".parse().unwrap())
        .await;
    assert!(matches!(refused, Err(SearchError::NoCandidates { .. })));
}

async fn found(searcher: &Searcher, tenant: &Tenant, query: &str, rank: Rank) -> Vec<String> {
    let options = FindOptions { most: 4, rank };
    let found = searcher
        .find(tenant, &query.parse().unwrap(), &options)
        .await;
    let ids = found.hits.iter().map(|hit| found.id(*hit).to_string());
    ids.collect()
}

fn keyword(fields: Option<FieldWeights>) -> Backend {
    Backend {
        kind: Kind::Keyword,
        fields,
    }
}

#[tokio::test]
async fn a_list_is_ranked_by_fields_or_by_several_back_ends_and_keeps_to_the_scope() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let everyone = Tenant::local();
    let query = "create an issue in a repository";
    let plain = found(&searcher, &everyone, query, Rank::By(keyword(None))).await;
    assert_eq!(plain[0], "github/create_issue");
    assert!(plain.len() == 4 && plain.contains(&"gitlab/create_issue".to_owned()));
    let names = FieldWeights::of(&[Field::Name]);
    let by_name = Rank::By(keyword(Some(names)));
    // Nothing of `repository` is in a name.
    let hits = found(&searcher, &everyone, "repository", by_name.clone()).await;
    assert!(hits.is_empty(), "{hits:?}");
    let fused = Rank::Fused(vec![keyword(None), keyword(Some(names))]);
    let both = found(&searcher, &everyone, query, fused.clone()).await;
    assert_eq!(both[0], "github/create_issue");
    let some = Tenant {
        id: TenantId::local(),
        scope: Scope::new(&["!github".to_owned()]).unwrap(),
    };
    for rank in [Rank::By(keyword(None)), by_name, fused] {
        let ids = found(&searcher, &some, query, rank).await;
        assert_eq!(ids[0], "gitlab/create_issue");
        assert!(ids.iter().all(|id| !id.starts_with("github")), "{ids:?}");
    }
}

#[tokio::test]
async fn without_a_model_words_stand_in_for_meaning_and_the_list_says_so() {
    let searcher = searcher(sample::catalog(), ALIVE_MAX, vec![]);
    let query = "weather forecast".parse().unwrap();
    for (kind, expected) in [
        (Kind::Keyword, None),
        (Kind::Semantic, Some(Degraded::ModelMissing)),
        (Kind::Hybrid, Some(Degraded::ModelMissing)),
    ] {
        let options = FindOptions {
            most: 1,
            rank: Rank::By(Backend { kind, fields: None }),
        };
        let found = searcher.find(&Tenant::local(), &query, &options).await;
        assert_eq!(found.id(found.hits[0]).to_string(), "weather/get_forecast");
        assert_eq!((found.hits.len(), found.degraded), (1, expected));
        assert_eq!(found.tools_total, 11);
    }
}
