//! Telegram.

pub mod html;
