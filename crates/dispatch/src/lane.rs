//! One lane a session: what happens to a message that comes while another is being worked on, and who works on it.
//!
//! [`machine`] decides, [`actor`] does, with a [`running`] run; [`mod@command`] is what it is asked, [`turn`] what it has to know of a message. [`aside`] answers what is meant
//! for the gateway meanwhile, [`change`] is what others do to the session.

mod actor;
mod aside;
mod change;
mod command;
mod machine;
mod running;
mod supervisor;
mod turn;

pub(crate) use change::{Change, ChangeKind, RunBeside};
pub(crate) use command::{Arrival, Command};
pub(crate) use supervisor::Supervisor;
