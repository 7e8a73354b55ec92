//! Progress bars on a terminal.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// Creates a bar in the style `template`; `length` is `None` if the amount of work is not known.
///
/// The bar is hidden if standard error is no terminal, or if `is_hidden`, as when the output is JSON.
pub(super) fn progress_bar(length: Option<u64>, template: &str, is_hidden: bool) -> ProgressBar {
    if is_hidden || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = length.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
