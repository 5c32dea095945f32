//! Words that mean the same in a request for a tool and in a tool's name.

use std::collections::HashMap;

use crate::search::terms;

/// One group a line. Groups are small and of everyday words: a tool is *called* one of these and
/// *asked for* with another.
const GROUPS: &str = "
    create add make new insert
    delete remove erase clear drop
    get fetch retrieve read show view
    list enumerate browse
    find search lookup discover
    send post publish deliver
    update edit modify change
    stop cancel abort terminate kill end halt
    start run launch execute begin trigger
    disable deactivate suspend
    enable activate
    copy duplicate clone fork
    picture image photo
    movie film
    song track music
    money payment
    refund reimburse
    customer client
    login signin authenticate
    website site webpage page
    meeting event appointment
    directory folder
    translate translation
    speak speech voice spoken
    audio sound
    painting artwork art
    error failure exception
    price quote rate cost
    stock share equity
    job task
    undo revert reset rollback
    schedule plan
    purchase buy order
    hotel accommodation lodging
    flight plane
    employee staff
    company organization business
    person people user profile
    summarize summary digest
    analyze analysis inspect
    convert transform
    download fetch save
    upload store
    email mail
    phone mobile
    chart graph plot diagram
    document doc file
    code source codebase
    repository repo
    bug issue ticket
    comment reply
    invoice bill
    weather forecast
    currency exchange
    news article headline
    paper publication
    picture screenshot
    explain describe
    compare diff
    generate create produce
    verify validate check
    monitor watch track
    alert notification notify
    deploy release rollout
    merge combine join
    split divide
    lock restrict
    permission access role
    database db
    query select
    count number
    backup snapshot
    restore recover
    subscribe follow
    like favorite star
    recommend suggest
";

/// Stems by stem.
#[derive(Clone, Debug)]
pub(super) struct Synonyms(HashMap<Box<str>, Vec<Box<str>>>);

impl Synonyms {
    /// The built-in groups.
    pub(super) fn new() -> Self {
        let mut all: HashMap<Box<str>, Vec<Box<str>>> = HashMap::new();
        for group in GROUPS.lines() {
            let stems: Vec<Box<str>> = group
                .split_whitespace()
                .map(|word| terms::stem(word).into())
                .collect();
            for stem in &stems {
                let others = all.entry(stem.clone()).or_default();
                others.extend(stems.iter().filter(|other| *other != stem).cloned());
                others.sort_unstable();
                others.dedup();
            }
        }
        Self(all)
    }

    /// Stems that mean about the same as a stem.
    pub(super) fn of(&self, stem: &str) -> &[Box<str>] {
        self.0.get(stem).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_go_both_ways_and_are_looked_up_by_stem() {
        let synonyms = Synonyms::new();
        let has = |word: &str, other: &str| {
            let (word, other) = (terms::stem(word), terms::stem(other));
            synonyms.of(&word).iter().any(|found| **found == *other)
        };
        assert!(has("disabling", "deactivate") && has("deactivate", "disable"));
        assert!(has("movies", "film") && !has("movies", "movie"));
        assert!(synonyms.of("slack").is_empty());
    }
}
