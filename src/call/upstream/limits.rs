//! What is set between fork and exec of a child: it dies with us, and leaves no core dump.

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
pub(super) fn apply(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the closure makes system calls only (prctl, getppid, setrlimit); it does not
    // allocate, lock or touch shared memory, as is asked of code between fork and exec.
    unsafe {
        command.pre_exec(move || before_exec(parent));
    }
}

fn before_exec(parent: Pid) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the signal was set.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
        }
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // Refused where the limit is lower already.
    let _lower = setrlimit(Resource::RLIMIT_NOFILE, FILES_MAX, FILES_MAX);
    Ok(())
}
