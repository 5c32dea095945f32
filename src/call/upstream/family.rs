//! Processes that a child has started and moved out of its group, as browsers are: found while the
//! child lives, so that they can be ended with it.
//!
//! One that was left behind by a parent that has ended already is nobody's, and is not found.

use std::collections::HashMap;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Processes looked at; a machine with more is left to the process groups.
const PROCESSES_MAX: usize = 20_000;

/// Descendants of a process at one moment.
#[derive(Debug, Default)]
pub(super) struct Family(Vec<Member>);

/// A process, told from a later one of the same number by the time of its start.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Member {
    pid: i32,
    started: u64,
}

impl Family {
    /// All descendants of a process, itself not counted. Empty where there is no `/proc`.
    pub(super) fn of(ancestor: Pid) -> Self {
        let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Self::default();
        };
        for entry in entries.take(PROCESSES_MAX).filter_map(Result::ok) {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if let Some((parent, member)) = pid.and_then(look) {
                children.entry(parent).or_default().push(member);
            }
        }
        let mut found = Vec::new();
        let mut parents = vec![ancestor.as_raw()];
        while let Some(parent) = parents.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                parents.push(child.pid);
                found.push(child);
            }
        }
        Self(found)
    }

    /// Kills those that still run.
    pub(super) fn kill(&self) {
        for member in &self.0 {
            if look(member.pid).is_some_and(|(_, now)| now == *member) {
                // It may end by itself between the look and the signal, which is as good.
                let _gone = kill(Pid::from_raw(member.pid), Signal::SIGKILL);
            }
        }
    }
}

/// A process and its parent, from `/proc/PID/stat`. The name in it may hold anything, so that it is
/// read from behind.
fn look(pid: i32) -> Option<(i32, Member)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    // Field 22 of the line: the first behind the name is field 3, and two are read.
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, Member { pid, started }))
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
        let other = Member {
            started: member.started + 1,
            ..member.clone()
        };
        Family(vec![other]).kill();
        assert!(child.try_wait().unwrap().is_none());
        Family(vec![member.clone()]).kill();
        assert!(!child.wait().unwrap().success());
    }
}
