//! The program `qmd` as the searcher of an agent's memory (spec `memory.md` §15): a local search engine for Markdown with
//! an index of its own.
//!
//! Begin with [`Qmd`]: it is made with [`QmdSettings`] and something that runs programs ([`QmdPrograms`]), and is asked to
//! [`search`](Qmd::search), [`get`](Qmd::get), [`update`](Qmd::update) and tell its [`status`](Qmd::status). A search that
//! fails says why; whoever asks has another searcher, and `Qmd` decides when it may be asked again. Below it:
//!
//! - `searches`, `updates`: the two things that are done, both by the `engine`;
//! - `collections`: what is searched, and which file a path names;
//! - `command_line`, `programs`: what `qmd` is called with, and the seam to what calls it;
//! - `hits`: from what it prints to hits; `index`: its own index file, read only;
//! - `export`: transcripts as files; `scope`: the sessions that may search;
//! - `clock`: when it is updated, and when it is asked again after a failure.
//!
//! The crate knows nothing of agents, the gateway or the index of this program, and starts no process itself.

mod clock;
mod collections;
mod command_line;
mod engine;
mod error;
mod export;
mod hits;
mod index;
mod programs;
mod qmd;
mod scope;
mod searches;
mod settings;
#[cfg(test)]
mod tests;
mod updates;

pub use collections::QmdGetError;
pub use error::QmdError;
pub use programs::{QmdCall, QmdCallError, QmdPrograms, QmdRunning};
pub use qmd::{Qmd, QmdStatus};
pub use searches::QmdQuestion;
pub use settings::{QmdExports, QmdSettings, QmdSource};
pub use updates::UpdateWish;
