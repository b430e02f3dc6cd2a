//! Attempts to get out of the sandbox of the kernel, each refused for a reason that is looked for.
//! Files outside hold a word that must never be heard inside.

mod bench;
mod files;
mod kernel;
mod outside;
mod processes;
mod tools;
