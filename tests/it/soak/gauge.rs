//! What a program and its children use, looked at once a second from outside.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Samples of one minute.
const MINUTE: usize = 60;

/// One look. Memory is in MiB.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    resident: usize,
    descriptors: usize,
    children: usize,
    children_resident: usize,
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} MiB, {} descriptors, {} children with {} MiB",
            self.resident, self.descriptors, self.children, self.children_resident
        )
    }
}

fn resident_kib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}

/// Fields of `/proc/PID/stat` behind the name, which may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// All processes below one, those that wait to be collected not counted.
pub(super) fn descendants(ancestor: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(fields) = stat(pid)
            && fields[0] != "Z"
        {
            children
                .entry(fields[1].parse().unwrap())
                .or_default()
                .push(pid);
        }
    }
    let (mut found, mut parents) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = parents.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        parents.extend(&below);
        found.extend(below);
    }
    found
}

pub(super) fn look(pid: u32) -> Look {
    let children = descendants(pid);
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd"));
    Look {
        resident: resident_kib(pid) / 1024,
        descriptors: folder.map_or(0, Iterator::count),
        children: children.len(),
        children_resident: children.into_iter().map(resident_kib).sum::<usize>() / 1024,
    }
}

/// Looks until it is stopped.
pub(super) struct Gauge {
    looks: Arc<Mutex<Vec<(Duration, Look)>>>,
    task: JoinHandle<()>,
}

impl Gauge {
    pub(super) fn start(pid: u32) -> Self {
        let looks = Arc::new(Mutex::new(Vec::new()));
        let (inside, start) = (looks.clone(), Instant::now());
        let task = tokio::spawn(async move {
            loop {
                let now = tokio::task::spawn_blocking(move || look(pid))
                    .await
                    .unwrap();
                inside.lock().unwrap().push((start.elapsed(), now));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        Self { looks, task }
    }

    pub(super) fn stop(self) -> Samples {
        self.task.abort();
        Samples(self.looks.lock().unwrap().clone())
    }
}

/// Looks and their times.
pub(super) struct Samples(Vec<(Duration, Look)>);

impl Samples {
    pub(super) fn after(&self, start: Duration) -> Self {
        let kept = self.0.iter().filter(|(at, _)| start <= *at);
        Self(kept.copied().collect())
    }

    /// The most processes at one time.
    pub(super) fn children_max(&self) -> usize {
        let children = self.0.iter().map(|(_, look)| look.children);
        children.max().unwrap_or_default()
    }

    /// The middle of each figure over some looks.
    fn middle(looks: &[(Duration, Look)]) -> Look {
        let middle = |of: fn(&Look) -> usize| {
            let mut all: Vec<usize> = looks.iter().map(|(_, look)| of(look)).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or_default()
        };
        Look {
            resident: middle(|look| look.resident),
            descriptors: middle(|look| look.descriptors),
            children: middle(|look| look.children),
            children_resident: middle(|look| look.children_resident),
        }
    }

    pub(super) fn first_minute(&self) -> Look {
        Self::middle(&self.0[..MINUTE.min(self.0.len())])
    }

    pub(super) fn last_minute(&self) -> Look {
        Self::middle(&self.0[self.0.len().saturating_sub(MINUTE)..])
    }

    /// The last minute is within some hundredths of the first.
    pub(super) fn assert_flat(&self, hundredths: usize) {
        let (first, last) = (self.first_minute(), self.last_minute());
        for (what, first, last) in [
            ("memory", first.resident, last.resident),
            ("descriptors", first.descriptors, last.descriptors),
            ("processes", first.children, last.children),
        ] {
            let drift = first.abs_diff(last) * 100;
            assert!(drift <= hundredths * first, "{what}: {first} to {last}");
        }
    }
}

/// Ticks of 10 ms that a process has used.
pub(super) fn ticks(pid: u32) -> u64 {
    // Fields 14 and 15 of the line: the first behind the name is field 3.
    let fields = stat(pid).unwrap();
    let used = fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().unwrap());
    used.sum()
}

/// Those of ten seconds.
pub(super) async fn ticks_in_ten_seconds(pid: u32) -> u64 {
    let before = ticks(pid);
    tokio::time::sleep(Duration::from_secs(10)).await;
    ticks(pid) - before
}

pub(super) async fn until_no_child(pid: u32) {
    for _ in 0..600 {
        if descendants(pid).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("children are left: {}", look(pid));
}
