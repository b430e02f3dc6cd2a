//! The desktop's own programs for the clipboard and the browser.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use openclaw_config::Environment;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Time limit of a helper. An opener that takes longer has become the browser.
const LIMIT: Duration = Duration::from_secs(2);

/// A program with its arguments.
type Helper = &'static [&'static str];

/// Result of opening the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opened {
    /// The browser has the address.
    Yes,
    /// No browser was found, or it refused.
    No,
    /// `--no-open`.
    NotAsked,
}

/// Helper programs of this desktop, best first; none where there is no screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Helpers {
    copiers: &'static [Helper],
    openers: &'static [Helper],
}

const MAC: Helpers = Helpers { copiers: &[&["pbcopy"]], openers: &[&["open"]] };
const WSL: Helpers = Helpers { copiers: &[&["clip.exe"]], openers: &[&["wslview"], &["xdg-open"]] };
const WAYLAND: Helpers = Helpers { copiers: &[&["wl-copy"]], openers: &[&["xdg-open"]] };
const X11: Helpers = Helpers {
    copiers: &[&["xclip", "-selection", "clipboard"], &["xsel", "--clipboard", "--input"]],
    openers: &[&["xdg-open"]],
};
const NONE: Helpers = Helpers { copiers: &[], openers: &[] };

impl Helpers {
    /// Helpers of the desktop that the environment describes.
    pub(super) fn of(env: &Environment) -> Self {
        let has = |name: &str| env.get_nonblank(name).is_some();
        if cfg!(target_os = "macos") {
            return if has("SSH_CONNECTION") { NONE } else { MAC };
        }
        match () {
            () if has("WAYLAND_DISPLAY") => WAYLAND,
            () if has("DISPLAY") => X11,
            () if has("WSL_DISTRO_NAME") => WSL,
            () => NONE,
        }
    }

    /// True if this machine has a screen for a person.
    pub(super) fn has_screen(&self) -> bool {
        !self.openers.is_empty()
    }

    /// Puts a text into the clipboard; whether that worked.
    pub(super) async fn copy(&self, text: &str) -> bool {
        for helper in self.copiers {
            let Some(mut child) = start(helper, None, Stdio::piped()) else { continue };
            let fed = async {
                if let Some(mut input) = child.stdin.take() {
                    input.write_all(text.as_bytes()).await?;
                    input.shutdown().await?;
                }
                child.wait().await
            };
            if timeout(LIMIT, fed).await.is_ok_and(|ended| ended.is_ok_and(|status| status.success())) {
                return true;
            }
        }
        false
    }

    /// Opens an address in the browser.
    pub(super) async fn open(&self, address: &str) -> Opened {
        for helper in self.openers {
            let Some(mut child) = start(helper, Some(address), Stdio::null()) else { continue };
            if timeout(LIMIT, child.wait()).await.is_err() || has_ended_well(&mut child) {
                return Opened::Yes;
            }
        }
        Opened::No
    }
}

fn has_ended_well(child: &mut Child) -> bool {
    child.try_wait().ok().flatten().as_ref().is_some_and(ExitStatus::success)
}

fn start(helper: Helper, last: Option<&str>, input: Stdio) -> Option<Child> {
    let (program, args) = helper.split_first()?;
    let mut command = Command::new(program);
    command.args(args).args(last).stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    // A helper that is not installed is no error: the next is tried.
    command.spawn().ok()
}

#[cfg(all(test, not(target_os = "macos")))]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_those_of_the_desktop() {
        let rows: [(&[(&str, &str)], Helpers); 5] = [
            (&[], NONE),
            (&[("DISPLAY", " ")], NONE),
            (&[("DISPLAY", ":0")], X11),
            (&[("DISPLAY", ":0"), ("WAYLAND_DISPLAY", "wayland-0")], WAYLAND),
            (&[("WSL_DISTRO_NAME", "Ubuntu")], WSL),
        ];
        for (vars, expect) in rows {
            assert_eq!(Helpers::of(&Environment::new(vars.iter().copied(), "/")), expect, "{vars:?}");
        }
    }
}
