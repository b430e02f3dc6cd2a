//! Decides which commands may run on this host without approval (spec `tools.md` §3.3, §3.4).
//!
//! [`analysis`] reads a command line as a shell would, or says that it can't. [`allowlist`] decides whether every program in
//! it may run unasked. [`flaw`] says what is wrong with a file. [`file`](mod@file) is `exec-approvals.json`, [`store`] reads and writes it. [`resolve`] combines it with
//! `tools.exec` and decides: run, ask or deny. Only [`store`] and [`executable::OnDisk`] touch the disk.

pub mod allowlist;
pub mod analysis;
pub mod command_runners;
pub mod executable;
pub mod file;
pub mod flaw;
pub mod pattern;
pub mod resolve;
pub mod safe_bins;
pub mod shown;
pub mod store;
