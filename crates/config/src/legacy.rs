//! Keys of older versions (spec `config.md` §6): finding them, and moving their values to where they belong now.

mod detect;
mod migrate;
mod routing;

pub(crate) use detect::detect;
pub(crate) use migrate::{migrate, object_at};
