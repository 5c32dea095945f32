//! A source on the web: its first document and those behind it.

use reqwest::Url;
use sha2::{Digest, Sha256};

use crate::catalog::import::{self, Document};
use crate::catalog::refresh::fetch::{FetchError, FetchOptions, Fetched, Fetcher};
use crate::catalog::refresh::read::ReadLimits;
use crate::catalog::snapshot::{Seen, SeenDocument, hex};

/// Where a source on the web is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) url: &'a Url,
    /// Hosts beside its own that lists of tools may be fetched from.
    pub(super) lists_from: &'a [Box<str>],
}

impl Place<'_> {
    /// Whether a list of tools may be fetched: from the source's own origin, or by `https` from a
    /// host that the operator named.
    fn may_fetch(self, list: &Url) -> bool {
        let named = |host: &str| self.lists_from.iter().any(|named| **named == *host);
        let is_named = list.scheme() == "https" && list.host_str().is_some_and(named);
        self.url.origin() == list.origin() || is_named
    }
}

/// Most pages of a registry that are followed.
const PAGES_MAX: usize = 2_000;

/// All documents that a URL leads to: it, the further pages that it names, and the lists of tools
/// that complete it. One further document that cannot be fetched is left out, and `report` is told.
pub async fn fetch_documents(
    url: &Url,
    options: FetchOptions,
    report: &(dyn Fn(String) + Send + Sync),
) -> Result<Vec<Document>, FetchError> {
    let fetcher = Fetcher::new(options);
    let (first, _) = fetch_one(&fetcher, url).await?;
    let place = Place {
        url,
        lists_from: &[],
    };
    let followed = follow(&fetcher, place, (first, &[]), report).await?;
    Ok(followed.documents)
}

async fn fetch_one(fetcher: &Fetcher, url: &Url) -> Result<(Document, Seen), FetchError> {
    match fetcher.fetch(url, None).await? {
        Fetched::Document(text, seen) => {
            let name = url.to_string();
            Ok((Document { name, text }, seen))
        }
        // Nothing was seen before, so that this is no answer.
        Fetched::NotModified => Err(FetchError::Status(http::StatusCode::NOT_MODIFIED)),
    }
}

/// All documents of a source, and what tells whether those behind the first have changed.
struct Followed {
    documents: Vec<Document>,
    further: Vec<SeenDocument>,
    /// Whether a list of tools could not be fetched that has never been seen.
    lacks_a_list: bool,
}

impl Followed {
    fn add(&mut self, document: Document, seen: Seen) {
        self.further.push(SeenDocument {
            url: document.name.clone(),
            etag: seen.etag,
            last_modified: seen.last_modified,
            digest: digest_of(&document.text),
        });
        self.documents.push(document);
    }
}

/// Whether all documents behind the first are as they were seen. That the first has not changed
/// says nothing of them.
async fn are_as_seen(fetcher: &Fetcher, further: &[SeenDocument]) -> Result<bool, FetchError> {
    for document in further {
        let Ok(url) = Url::parse(&document.url) else {
            return Ok(false);
        };
        let seen = Seen {
            etag: document.etag.clone(),
            last_modified: document.last_modified.clone(),
            ..Seen::default()
        };
        match fetcher.fetch(&url, Some(&seen)).await? {
            Fetched::NotModified => {}
            Fetched::Document(text, _) if digest_of(&text) == document.digest => {}
            Fetched::Document(..) => return Ok(false),
        }
    }
    Ok(true)
}

/// The first document, the pages behind it, and the lists of tools that may be fetched. A list that
/// was there before and is not now fails the whole, so that its tools stay as they are.
async fn follow(
    fetcher: &Fetcher,
    place: Place<'_>,
    (first, known): (Document, &[SeenDocument]),
    report: &(dyn Fn(String) + Send + Sync),
) -> Result<Followed, FetchError> {
    let bytes_max = ReadLimits::default().bytes_max;
    let lists = import::tools_urls(&first);
    let mut followed = Followed {
        documents: vec![first],
        further: Vec::new(),
        lacks_a_list: false,
    };
    let mut bytes = 0;
    while let Some(last) = followed.documents.last()
        && let Some(cursor) = import::next_cursor(&last.text)
    {
        if PAGES_MAX <= followed.documents.len() {
            return Err(FetchError::TooManyPages { max: PAGES_MAX });
        }
        bytes += last.text.len() as u64;
        if bytes_max < bytes {
            return Err(FetchError::TooLarge { max: bytes_max });
        }
        let (page, seen) = fetch_one(fetcher, &page_at(place.url, &cursor)).await?;
        followed.add(page, seen);
    }
    for list in lists {
        let allowed = |list: &Url| place.may_fetch(list);
        let Some(list) = Url::parse(&list).ok().filter(allowed) else {
            report(format!(
                "`{list}` is on another server and was not fetched: name its host in `lists_from` \
                 of the catalog source"
            ));
            continue;
        };
        match fetch_one(fetcher, &list).await {
            Ok((document, seen)) => followed.add(document, seen),
            Err(error) if known.iter().any(|seen| seen.url == list.as_str()) => return Err(error),
            Err(error) => {
                followed.lacks_a_list = true;
                report(format!("`{list}` was not fetched: {error}"));
            }
        }
    }
    Ok(followed)
}

/// The URL with its `cursor` replaced.
fn page_at(url: &Url, cursor: &str) -> Url {
    let mut page = url.clone();
    let kept: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| name != "cursor")
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    page.query_pairs_mut()
        .clear()
        .extend_pairs(kept)
        .append_pair("cursor", cursor);
    page
}

/// All documents of a URL, with what tells whether they change; `None` when nothing has.
pub(super) async fn fetch_source(
    fetcher: &Fetcher,
    place: Place<'_>,
    seen: Option<&Seen>,
) -> Result<Option<(Vec<Document>, Seen)>, FetchError> {
    let url = place.url;
    let (first, mut next) = match (fetcher.fetch(url, seen).await?, seen) {
        (Fetched::NotModified, Some(seen)) => {
            if are_as_seen(fetcher, &seen.further).await? {
                return Ok(None);
            }
            fetch_one(fetcher, url).await?
        }
        (Fetched::NotModified, None) => return Ok(None),
        (Fetched::Document(text, next), _) => {
            let name = url.to_string();
            (Document { name, text }, next)
        }
    };
    let told = |why: String| tracing::warn!(url = %url, why, "left out a list of tools");
    let known = seen.map_or(&[][..], |seen| &seen.further);
    let followed = follow(fetcher, place, (first, known), &told).await?;
    next.further = followed.further;
    if followed.lacks_a_list {
        // The next round must not take the unchanged first document for the whole.
        (next.etag, next.last_modified) = (None, None);
    }
    Ok(Some((followed.documents, next)))
}

fn digest_of(text: &str) -> String {
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tools_come_from_the_same_host_or_one_that_is_named() {
        let url = Url::parse("http://127.0.0.1:80/catalog.yaml").unwrap();
        let lists_from = ["lists.example".into()];
        let place = Place {
            url: &url,
            lists_from: &lists_from,
        };
        for (list, allowed) in [
            ("http://127.0.0.1:80/tools.json", true),
            ("http://127.0.0.1:81/tools.json", false),
            ("https://lists.example/tools.json", true),
            ("http://lists.example/tools.json", false),
            ("https://other.example/tools.json", false),
        ] {
            assert_eq!(
                place.may_fetch(&Url::parse(list).unwrap()),
                allowed,
                "{list}"
            );
        }
    }
}
