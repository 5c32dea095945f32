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
    purge wipe empty truncate delete remove
setup provision initialize create
configure settings preferences options
rename retitle
move relocate transfer
attach link associate connect
detach unlink disconnect
assign delegate
approve accept confirm
reject decline deny
invite add
kick ban block remove
mute silence
archive shelve
pin bookmark
star favorite
rate review score
vote poll survey
answer reply respond
ask question prompt
chat message conversation
channel room
ping message notify
broadcast publish announce
forward redirect
draft compose write
read open
write save
print render
paint draw
sketch draw
resize scale
crop trim cut
rotate flip
blur mask
compress zip shrink
extract unzip unpack
encrypt cipher
decrypt decipher
sign signature
encode decode
parse interpret
format prettify
lint check
test verify
debug troubleshoot diagnose
trace track
log record
crash error
fail flaky
build compile
install setup
upgrade update
downgrade rollback
reboot restart
pause suspend hold
resume continue unpause
wait sleep delay
retry rerun repeat
kill terminate
spawn start
host server machine
vm machine instance
container pod
cluster deployment
node machine
bucket storage
disk volume storage
memory ram
cpu processor
network subnet
firewall security
domain dns
certificate ssl tls
key token
password credential secret
signup register
logout signout
account profile
member user
team group
role permission
owner author creator
contact person
lead prospect
deal opportunity
order purchase
cart basket
checkout pay
pay payment charge
subscription plan
discount coupon promo
tax vat
salary payroll
budget expense
bank account
balance funds
transfer send
wallet address
coin token crypto
exchange trade swap
market ticker
dividend yield
earnings income
revenue sales
report summary
dashboard report
metric statistic stats measurement
statistic stats
percent percentage
average mean
sum total
max maximum
min minimum
sort order rank
filter narrow
aggregate group
schema structure fields columns
column field
row record entry
table sheet
spreadsheet sheet excel
cell range
slide presentation deck
pdf document
word document
note memo
notebook journal
reminder alarm
calendar agenda
appointment event
timezone time
date day
hour time
today current
now current
recent latest
newest latest
trend popular hot
top best
near nearby around
distance route directions
route directions path
walk walking
drive driving
train railway
bus transit
car vehicle
trip journey itinerary travel
city town
country nation
address location place
map geocode
restaurant dining food
recipe dish meal
ingredient food
drink cocktail
exercise workout
doctor physician
drug medicine medication
disease condition illness
trial study
gene genome
protein molecule
planet space
asteroid neo
star astronomy
game match
player athlete
team club
league championship tournament
score result
standings leaderboard ranking table
movie cinema
actor cast
show series tv episode
lyrics song
artist musician
album record
playlist tracks
podcast episode
voice audio speech
sound noise audio
clip video
subtitle caption transcript
transcribe transcript
narrate speech
video movie
camera photo
book novel
author writer
library books
quote saying
joke humor
story tale
lesson course class
student learner
exam test quiz
flashcard card deck
study learn review
definition meaning
dictionary word
language locale
sentence text
paragraph text
title heading
tag label
category topic
keyword term
similar related like
random lucky
dice roll
hash digest checksum
uuid guid
color colour
emoji icon
logo icon
theme style
button element
click press tap
type input fill
scroll swipe
tab window
back previous
forward next
browser web
url link
scrape crawl
screenshot capture
cookie session
webhook hook callback
api endpoint
request call
response reply
function method
package module library
dependency package
deprecated abandoned obsolete
vulnerability cve
license licence
branch ref
commit changeset
merge pull
conflict clash
stage add
unstage reset
discard reset restore
stash shelve
tag release
pipeline workflow
job build run
secret variable
queue topic
publish produce
consume subscribe
cache store
index catalog
embed vector
question query
sentiment mood emotion fear
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
