//! What is set between fork and exec of a child: it dies with us, has limits, and leaves no core
//! dump.

#![expect(
    unsafe_code,
    reason = "`pre_exec` is the only way to set a parent-death signal before the program runs"
)]

use std::io;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};
use tokio::process::Command;

/// Open files of a child.
const FILES_MAX: u64 = 4_096;

/// Applies all of it.
///
/// Memory is limited by `RLIMIT_DATA`: what a process can write to. Node and others reserve far more
/// addresses than they use, so that `RLIMIT_AS` would stop them at once. Processes are not limited
/// here: `RLIMIT_NPROC` counts all that the user runs.
pub(super) fn apply(command: &mut Command, memory_bytes_max: Option<u64>) {
    let parent = getpid();
    // SAFETY: the closure makes system calls only (prctl, getppid, setrlimit); it does not
    // allocate, lock or touch shared memory, as is asked of code between fork and exec.
    unsafe {
        command.pre_exec(move || before_exec(parent, memory_bytes_max));
    }
}

fn before_exec(parent: Pid, memory_bytes_max: Option<u64>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the signal was set.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
        }
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    if let Some(bytes) = memory_bytes_max {
        let _lower = setrlimit(Resource::RLIMIT_DATA, bytes, bytes);
    }
    // Refused where the limit is lower already.
    let _lower = setrlimit(Resource::RLIMIT_NOFILE, FILES_MAX, FILES_MAX);
    Ok(())
}
