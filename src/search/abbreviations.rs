//! Short forms that people write and catalogs do not, or the other way round.

use std::collections::HashMap;

/// Short form and long form. A short form is one lower-case word.
const BUILT_IN: &[(&str, &str)] = &[
    ("addr", "address"),
    ("acct", "account"),
    ("auth", "authentication"),
    ("aws", "amazon web services"),
    ("btc", "bitcoin"),
    ("cal", "calendar"),
    ("cfg", "configuration"),
    ("cal", "calendar"),
    ("config", "configuration"),
    ("conv", "convert"),
    ("db", "database"),
    ("dbs", "databases"),
    ("ddg", "duckduckgo"),
    ("del", "delete"),
    ("dev", "development"),
    ("dir", "directory"),
    ("dirs", "directories"),
    ("dl", "download"),
    ("dm", "direct message"),
    ("dms", "direct messages"),
    ("doc", "document"),
    ("docs", "documents"),
    ("env", "environment"),
    ("docx", "word document"),
    ("pptx", "powerpoint presentation"),
    ("md", "markdown"),
    ("txt", "text"),
    ("png", "image"),
    ("mp4", "video"),
    ("mp3", "audio"),
    ("es", "elasticsearch"),
    ("eth", "ethereum"),
    ("fb", "facebook"),
    ("fs", "file system"),
    ("fx", "foreign exchange currency"),
    ("gcal", "google calendar"),
    ("gcp", "google cloud"),
    ("gdocs", "google docs"),
    ("gdrive", "google drive"),
    ("gh", "github"),
    ("gl", "gitlab"),
    ("gmaps", "google maps"),
    ("gsheet", "google sheets"),
    ("gsheets", "google sheets"),
    ("hn", "hacker news"),
    ("ig", "instagram"),
    ("img", "image"),
    ("imgs", "images"),
    ("info", "information"),
    ("jpg", "jpeg image"),
    ("k8s", "kubernetes"),
    ("kb", "knowledge base"),
    ("kube", "kubernetes"),
    ("li", "linkedin"),
    ("loc", "location"),
    ("mgmt", "management"),
    ("mr", "merge request"),
    ("mrs", "merge requests"),
    ("msg", "message"),
    ("msgs", "messages"),
    ("mtg", "meeting"),
    ("mtgs", "meetings"),
    ("num", "number"),
    ("ocr", "extract text from image"),
    ("org", "organization"),
    ("orgs", "organizations"),
    ("param", "parameter"),
    ("params", "parameters"),
    ("perf", "performance"),
    ("pg", "postgres"),
    ("pic", "picture"),
    ("pics", "pictures"),
    ("pkg", "package"),
    ("pkgs", "packages"),
    ("ppt", "powerpoint presentation"),
    ("pr", "pull request"),
    ("prs", "pull requests"),
    ("psql", "postgres"),
    ("pwd", "password"),
    ("qr", "qr code"),
    ("repo", "repository"),
    ("repos", "repositories"),
    ("sched", "schedule"),
    ("sms", "text message"),
    ("spec", "specification"),
    ("stats", "statistics"),
    ("stt", "speech to text transcription"),
    ("temp", "temperature"),
    ("tg", "telegram"),
    ("tix", "tickets"),
    ("tmp", "temporary"),
    ("trans", "translate"),
    ("tts", "text to speech"),
    ("tx", "transaction"),
    ("txn", "transaction"),
    ("txns", "transactions"),
    ("txs", "transactions"),
    ("tz", "timezone"),
    ("usr", "user"),
    ("vid", "video"),
    ("vids", "videos"),
    ("vm", "virtual machine"),
    ("vms", "virtual machines"),
    ("vuln", "vulnerability"),
    ("vulns", "vulnerabilities"),
    ("wiki", "wikipedia"),
    ("ws", "workspace"),
    ("xls", "excel spreadsheet"),
    ("xlsx", "excel spreadsheet"),
    ("yt", "youtube"),
];

/// Long forms by short form.
#[derive(Clone, Debug)]
pub(super) struct Abbreviations(HashMap<Box<str>, Box<str>>);

impl Abbreviations {
    /// The built-in ones, and an operator's own, which win.
    pub(super) fn new(own: &[(Box<str>, Box<str>)]) -> Self {
        let built_in = BUILT_IN
            .iter()
            .map(|(short, long)| ((*short).into(), (*long).into()));
        let own = own
            .iter()
            .map(|(short, long)| (short.to_lowercase().into_boxed_str(), long.clone()));
        let mut all: HashMap<Box<str>, Box<str>> = built_in.chain(own).collect();
        all.retain(|_, long| !long.trim().is_empty());
        Self(all)
    }

    /// What a lower-case word stands for.
    pub(super) fn expand(&self, word: &str) -> Option<&str> {
        self.0.get(word).map(|long| &**long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_adds_replaces_and_removes() {
        let own = [
            ("ACME".into(), "acme ticket system".into()),
            ("pr".into(), "press release".into()),
            ("mr".into(), "".into()),
        ];
        let all = Abbreviations::new(&own);
        assert_eq!(all.expand("acme"), Some("acme ticket system"));
        assert_eq!(all.expand("pr"), Some("press release"));
        assert_eq!(all.expand("mr"), None);
        assert_eq!(all.expand("k8s"), Some("kubernetes"));
    }
}
