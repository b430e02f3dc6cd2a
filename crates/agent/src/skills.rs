//! Skills: instructions for special tasks that lie in files beside the agent, of which the model reads what it needs (spec
//! `agent-runtime.md` §6).
//!
//! | concern | module |
//! |---|---|
//! | where skills come from, and who wins | `source`, `library` |
//! | which files they are | `scan` |
//! | what a file says | `skill`, `install_option`; the block at its head in [`crate::frontmatter`] |
//! | whether a skill can be used here | `standing`, `here`; its needs in [`crate::requirements`] |
//! | what the prompt says | `prompt_text` |
//! | slash commands | `command` |
//! | variables of commands | `overlay` |
//! | what runs are given; kept between turns; read again after an edit | `snapshot`, `book`, `watch`, `seen` |
//! | what clients are told | [`mod@status`] |
//! | installing what they need; changing their settings | [`mod@install`], `edit` |

mod book;
mod command;
mod edit;
mod here;
pub mod install;
mod install_option;
mod library;
mod overlay;
mod prompt_text;
mod scan;
mod seen;
mod skill;
mod snapshot;
mod source;
mod standing;
pub mod status;
#[cfg(test)]
mod testing;
mod watch;

pub use book::{Occasion, SkillBook, Wanted};
pub use command::{SkillCommand, called, meant, request};
pub use edit::{SkillChange, UpdateError, update};
pub use install_option::{Download, InstallSpec, Installer};
pub use library::Library;
pub use overlay::Overlay;
pub use skill::Skill;
pub use snapshot::Snapshot;
pub use source::{Root, SkillSource, roots};
pub use watch::follow;
