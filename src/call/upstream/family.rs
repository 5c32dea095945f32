//! The processes of a child: those of its group, and those that were moved out of it, as browsers
//! are. They are found while the child lives, so that they can be ended with it.
//!
//! One that left the group and whose parent has ended already is nobody's, and is not found.

use std::collections::HashSet;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Processes looked at; a machine with more is left to the process groups.
const PROCESSES_MAX: usize = 20_000;
/// Rounds in which a family that grows is stopped before it is killed.
const ROUNDS_MAX: usize = 10;

/// All processes of the machine at one moment. None where there is no `/proc`.
#[derive(Debug, Default)]
pub(super) struct Processes(Vec<Member>);

/// The processes of one child at one moment, itself among them.
#[derive(Debug, Default)]
pub(super) struct Family(Vec<Member>);

/// A process, told from a later one of the same number by the time of its start.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Member {
    pid: i32,
    parent: i32,
    group: i32,
    started: u64,
}

impl Processes {
    /// Reads `/proc`, which takes milliseconds.
    pub(super) fn look() -> Self {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Self::default();
        };
        let pids = entries
            .take(PROCESSES_MAX)
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        Self(pids.filter_map(look).collect())
    }

    /// The group of a child, and all that descend from one in it.
    pub(super) fn below(&self, child: Pid) -> Family {
        let child = child.as_raw();
        let mut known: HashSet<i32> = HashSet::from([child]);
        let mut found = Vec::new();
        // A parent may stand behind its children: until nobody is added.
        let mut rest: Vec<&Member> = self.0.iter().collect();
        loop {
            let before = rest.len();
            rest.retain(|member| {
                let belongs =
                    member.group == child || member.pid == child || known.contains(&member.parent);
                if belongs {
                    known.insert(member.pid);
                    found.push((*member).clone());
                }
                !belongs
            });
            if rest.len() == before {
                return Family(found);
            }
        }
    }
}

impl Family {
    /// The processes of a child now.
    pub(super) fn of(child: Pid) -> Self {
        Processes::look().below(child)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Memory that they do not share with others, about.
    pub(super) fn bytes(&self) -> u64 {
        let members = self.0.iter();
        members.filter_map(|member| own_bytes(member.pid)).sum()
    }

    /// Kills those that still run.
    pub(super) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Kills a child with all its processes, while they start more: they are stopped first.
    pub(super) fn kill_growing(child: Pid) {
        let mut seen = 0;
        for _ in 0..ROUNDS_MAX {
            // The group may be gone already, which is what is wanted.
            let _gone = killpg(child, Signal::SIGSTOP);
            let family = Self::of(child);
            family.signal(Signal::SIGSTOP);
            if family.len() <= seen {
                break;
            }
            seen = family.len();
        }
        let family = Self::of(child);
        let _gone = killpg(child, Signal::SIGKILL);
        family.kill();
    }

    fn signal(&self, signal: Signal) {
        for member in &self.0 {
            if look(member.pid).is_some_and(|now| now.started == member.started) {
                // It may end by itself between the look and the signal, which is as good.
                let _gone = kill(Pid::from_raw(member.pid), signal);
            }
        }
    }
}

/// A process, from `/proc/PID/stat`. The name in it may hold anything, so that it is read from
/// behind.
fn look(pid: i32) -> Option<Member> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    // Fields 4, 5 and 22 of the line: the first behind the name is field 3.
    let parent = fields.nth(1)?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let started = fields.nth(16)?.parse().ok()?;
    Some(Member {
        pid,
        parent,
        group,
        started,
    })
}

/// Memory of a process that is no file's, from `/proc/PID/status`, where it is in KiB.
fn own_bytes(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_found_among_the_descendants_of_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let family = Family::of(nix::unistd::getpid());
        let member = family.0.iter().find(|member| member.pid == pid).unwrap();
        assert!(0 < Family(vec![member.clone()]).bytes());
        let other = Member {
            started: member.started + 1,
            ..member.clone()
        };
        Family(vec![other]).kill();
        assert!(child.try_wait().unwrap().is_none());
        Family(vec![member.clone()]).kill();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_family_is_a_group_and_its_descendants() {
        let member = |pid, parent, group| Member {
            pid,
            parent,
            group,
            started: 0,
        };
        // 9 left the group, and stands before its parent; 7 lost its parent, and is in the group.
        let all = Processes(vec![
            member(1, 0, 1),
            member(9, 6, 9),
            member(5, 2, 5),
            member(6, 5, 5),
            member(7, 1, 5),
            member(8, 1, 8),
        ]);
        let mut pids: Vec<i32> = all
            .below(Pid::from_raw(5))
            .0
            .iter()
            .map(|m| m.pid)
            .collect();
        pids.sort_unstable();
        assert_eq!(pids, [5, 6, 7, 9]);
    }
}
