//! One lane a session: what happens to a message that comes while another is being worked on, and who works on it.
//!
//! [`machine`] decides, [`actor`] does, with a [`running`] run. [`steering`] hands messages to a
//! run under way, [`aside`] answers what is meant for the gateway meanwhile, [`change`] is what is done to the session between two runs and [`global`] are the lanes all sessions share.

mod actor;
mod aside;
mod change;
mod global;
mod machine;
mod running;
mod steering;
mod supervisor;

pub(crate) use actor::{Arrival, Command, Job};
pub(crate) use global::{GlobalLanes, LaneSizes, Place};
pub(crate) use machine::Only;
pub(crate) use steering::SteeringQueue;
pub(crate) use supervisor::Supervisor;
