//! Memory: the index over `MEMORY.md` and `memory/*.md`, and search in it.
pub mod embedder;
