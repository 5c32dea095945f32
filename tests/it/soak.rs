//! Many tenants on the real program, with real upstreams beside one that fails in each hostile way:
//! no wrong answer, no call run twice, nothing grows, nothing is left behind.
//!
//! A short one with few tenants, unless `TOOLCRIB_SOAK_SECONDS` asks for the whole one (`make soak`).

mod caller;
mod gauge;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::caller::{Answer, Caller, Real, Seen};
use self::gauge::{Gauge, descendants};
use crate::call::{python, runs};
use crate::gateway::{NO_MODEL, folder};
use crate::program::{Folder, Program, has_servers, root};
use crate::tenants::key_of;

/// Callers of one tenant at one time.
const CALLERS: usize = 2;
/// From here on it is the whole soak, and is held to the figures.
const WHOLE_SECONDS: u64 = 240;
/// Servers that start at one time while all tenants make their first call.
const STARTS: usize = 3;
/// Children of children, at one time.
const SPARE: usize = 8;
/// How much the last minute may differ from the first, in hundredths.
const DRIFT_MAX: usize = 5;
/// What an idle program may use: a hundredth of a core, in ticks of 10 ms over ten seconds.
const IDLE_TICKS_MAX: u64 = 10;

/// How long, by how many, and within which limits.
struct Plan {
    seconds: u64,
    tenants: usize,
    /// Until what is kept of large results is full.
    warm_up: Duration,
    idle_s: u64,
    sessions: usize,
}

impl Plan {
    fn of_environment() -> Self {
        let given = std::env::var_os("TOOLCRIB_SOAK_SECONDS");
        let seconds = given
            .and_then(|text| text.to_str()?.parse().ok())
            .unwrap_or(15);
        if seconds < WHOLE_SECONDS {
            return Self {
                seconds,
                tenants: 10,
                warm_up: Duration::ZERO,
                idle_s: 4,
                sessions: 24,
            };
        }
        // A session of each tenant with the hostile server, and with one that is real, and few more:
        // who asks for another one takes the place of whoever is idle.
        Self {
            seconds,
            tenants: 50,
            warm_up: Duration::from_secs(90),
            idle_s: 20,
            sessions: 104,
        }
    }

    fn is_whole(&self) -> bool {
        WHOLE_SECONDS <= self.seconds
    }
}

/// The misbehaving server as a manifest, counting its calls in `count`.
fn manifest(count: &Path) -> String {
    let script = root().join("tests/it/upstream.py");
    let python = python().unwrap_or_default();
    let mut text = format!(
        "name = \"test\"\ntitle = \"Test\"\ndescription = \"Misbehaves on request.\"\ncategory = \"development\"\n\
         [launch.stdio]\ncommand = \"{python}\"\nargs = [\"{}\", \"--count={}\", \"--stubborn\"]\n\
         [provenance]\nsource = \"test\"\nlicense = \"Apache-2.0\"\n",
        script.display(),
        count.display()
    );
    for (name, arguments) in caller::HOSTILE_TOOLS {
        let arguments = arguments.iter().map(|(argument, kind)| {
            format!("{{ name = \"{argument}\", type = \"{kind}\", desc = \"A value.\" }},")
        });
        let arguments: String = arguments.collect();
        let tool = [
            "[[tools]]",
            &format!("name = \"{name}\""),
            &format!("description = \"Do what is called {name}.\""),
            &format!("arguments = [{arguments}]"),
            "",
        ];
        text.push_str(&tool.join("\n"));
    }
    text
}

fn set_up(plan: &Plan) -> Folder {
    let folder = folder("");
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(
        own.join("test.toml"),
        manifest(&folder.path().join("calls")),
    )
    .unwrap();
    let config = format!(
        "[catalog]\npaths = [\"{}\"]\nrefresh_s = 0\n[upstreams]\nconnect_s = 60\nidle_s = {}\n\
         total_max = {}\ntenant_max = 4\n[log]\nlevel = \"error\"\n",
        own.display(),
        plan.idle_s,
        plan.sessions
    );
    std::fs::write(folder.path().join("toolcrib.toml"), config).unwrap();
    folder
}

/// The callers of all tenants. Each tenant has one real server for itself, and now and then asks
/// another one.
fn callers(plan: &Plan, folder: &Folder, program: &Program) -> Vec<Caller> {
    let mut all = Vec::new();
    for number in 0..plan.tenants {
        let name = format!("tenant-{number}");
        let [home, other] = [number, number + 1].map(|at| Real::ALL[at % Real::ALL.len()]);
        let mut args = vec!["tenant", "add", &name];
        for server in ["test", home.name(), other.name()] {
            args.extend(["--allow", server]);
        }
        let key = key_of(folder, &args);
        let workspace = folder.path().join("workspaces").join(&name);
        for at in 0..CALLERS {
            all.push(Caller::new(
                (program.url.clone(), key.clone()),
                number * CALLERS + at,
                workspace.clone(),
                [home, other],
            ));
        }
    }
    all
}

/// Every tenant's servers are started, a few at one time.
async fn start_all(callers: &mut [Caller]) {
    let starts = Arc::new(Semaphore::new(STARTS));
    let first = callers.iter_mut().step_by(CALLERS).map(|caller| {
        let starts = starts.clone();
        async move {
            let _place = starts.acquire().await.unwrap();
            caller.start().await;
        }
    });
    join_all(first).await;
}

/// What was seen against what the hostile upstream has counted.
fn check_marks(seen: &[Seen], count: &Path) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let text = std::fs::read_to_string(count).unwrap();
    for id in text.lines().filter_map(|line| line.strip_prefix("mark:")) {
        *counts.entry(id).or_default() += 1;
    }
    for id in seen.iter().flat_map(|seen| &seen.marked) {
        assert_eq!(counts.get(id.as_str()), Some(&1), "{id}");
    }
    for id in seen.iter().flat_map(|seen| &seen.marks_lost) {
        assert!(
            counts.get(id.as_str()).is_none_or(|count| *count == 1),
            "{id}"
        );
    }
}

/// The same against the rows in the databases of real upstreams.
async fn check_rows(callers: &mut [Caller], seen: &[Seen]) {
    let query = "SELECT count(*) AS n, count(DISTINCT id) AS ids FROM marks";
    for (at, caller) in callers.iter_mut().enumerate().step_by(CALLERS) {
        let tenant = &seen[at..at + CALLERS];
        let rows: usize = tenant.iter().map(|seen| seen.rows).sum();
        let lost: usize = tenant.iter().map(|seen| seen.rows_lost).sum();
        if !caller.has_rows() {
            continue;
        }
        let answer = caller
            .run("read_query", "sqlite", json!({"query": query}))
            .await;
        let Answer::Text(text) = answer else {
            panic!("{answer:?}")
        };
        let mut numbers = text
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse().ok());
        let (n, ids): (usize, usize) = (numbers.next().unwrap(), numbers.next().unwrap());
        assert_eq!(n, ids, "a row was written twice");
        assert!(
            (rows..=rows + lost).contains(&n),
            "{n} rows, {rows} answered, {lost} lost"
        );
    }
}

/// Prints what was seen, and gives how many innocent calls were answered, were lost, and of these ran
/// out of time.
fn print_totals(seen: &[Seen]) -> (usize, usize, usize) {
    let mut hostile: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lost: BTreeMap<&str, usize> = BTreeMap::new();
    for seen in seen {
        for (way, n) in &seen.hostile {
            *hostile.entry(way).or_default() += n;
        }
        for (code, n) in &seen.lost {
            *lost.entry(code).or_default() += n;
        }
    }
    let answered: usize = seen.iter().map(|seen| seen.answered).sum();
    let slowest = seen.iter().map(|seen| seen.slowest).max();
    println!("slowest innocent call: {:?}", slowest.unwrap_or_default());
    println!("answered: {answered}, hostile: {hostile:?}, lost: {lost:?}");
    let timeouts = lost.get("UPSTREAM_TIMEOUT").copied();
    (answered, lost.values().sum(), timeouts.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_runs_twice_and_nothing_is_left_behind() {
    if python().is_none() || !has_servers("the soak") {
        return;
    }
    let plan = Plan::of_environment();
    let folder = set_up(&plan);
    let mut program = Program::start(&folder, &[NO_MODEL]);
    let pid = program.pid();
    let mut callers = callers(&plan, &folder, &program);
    start_all(&mut callers).await;

    let (gauge, used) = (Gauge::start(pid), gauge::ticks(pid));
    let start = Instant::now() + plan.warm_up;
    let end = start + Duration::from_secs(plan.seconds);
    join_all(callers.iter_mut().map(|caller| caller.until(end))).await;
    let (samples, used) = (gauge.stop(), gauge::ticks(pid) - used);
    let seconds = (plan.warm_up + Duration::from_secs(plan.seconds)).as_secs();
    println!(
        "{seconds} s, of which the program computed {} s",
        used / 100
    );
    let seen: Vec<Seen> = callers.iter_mut().map(Caller::take_seen).collect();
    let (answered, lost, timeouts) = print_totals(&seen);
    assert!(10 * lost < answered, "{answered} answered, {lost} lost");
    // On a machine with more to do than it can, a call may wait for longer than it has.
    assert!(100 * timeouts <= answered, "{timeouts} timeouts");
    check_marks(&seen, &folder.path().join("calls"));
    check_rows(&mut callers, &seen).await;

    let measured = samples.after(plan.warm_up);
    println!("first minute: {}", measured.first_minute());
    println!("last minute:  {}", measured.last_minute());
    if plan.is_whole() {
        measured.assert_flat(DRIFT_MAX);
        println!(
            "idle, all sessions open: {} ticks in 10 s",
            gauge::ticks_in_ten_seconds(pid).await
        );
    }
    // A process a session, and a few that live for a moment.
    let processes = samples.children_max();
    assert!(processes <= plan.sessions + SPARE, "{processes} processes");

    gauge::until_no_child(pid).await;
    let ticks = gauge::ticks_in_ten_seconds(pid).await;
    println!(
        "idle, none open: {ticks} ticks in 10 s; {}",
        gauge::look(pid)
    );
    assert!(ticks <= IDLE_TICKS_MAX, "{ticks} ticks");
    for orphan in seen.iter().flat_map(|seen| &seen.orphans) {
        assert!(!runs(orphan), "{orphan} is left");
    }
    program.signal("-TERM");
    assert!(
        program.ends_within(Duration::from_secs(30)),
        "{}",
        program.log()
    );
    assert_eq!(descendants(pid), Vec::<u32>::new());
}
