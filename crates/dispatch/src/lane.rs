//! Lanes, one per session: they decide what happens to a message that comes while another is being
//! worked on, and what works on it.
//!
//! [`machine`] decides, [`actor`] acts, with a [`running`] run; [`mod@command`] has the requests to
//! a lane, [`turn`] the facts about a message that it needs. [`aside`] answers messages for the
//! gateway meanwhile, [`shortcuts`] commands among words, [`change`] has the changes that others make to the session.

mod actor;
mod aside;
mod change;
mod command;
mod machine;
mod parts;
mod running;
pub(crate) mod shortcuts;
mod supervisor;
mod turn;

pub(crate) use aside::AsideParts;
pub(crate) use change::{ChangeKind, SessionChange};
pub(crate) use command::{Arrival, LaneCommand};
pub(crate) use parts::LaneParts;
pub(crate) use supervisor::Supervisor;
