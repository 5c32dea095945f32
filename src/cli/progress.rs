//! Progress bars on standard error where it is a terminal, plain lines where it is none.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::output::Output;
use crate::models::Progress;

/// A bar that counts up to a number which is known later.
pub(super) fn counting(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {eta}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what);
    bar
}

/// Steps of fetching.
pub(super) struct Steps(ProgressBar);

impl Steps {
    /// A spinner that names the step.
    pub(super) fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Takes the spinner away.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Steps {
    fn step(&self, text: &str) {
        self.0.set_message(text.to_owned());
        if !std::io::stderr().is_terminal() {
            Output::new().note(format!("  {text}"));
        }
    }
}
