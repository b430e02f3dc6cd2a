//! Memory: the index over `MEMORY.md` and `memory/*.md`, and search in it.
//!
//! The files are the truth and belong to the workspace; the index is derived and can be deleted at any time. This crate
//! will chunk the files, keep the SQLite index (full text and vectors) and rank hits. It knows nothing of agents, and
//! embedding clients are handed in. Nothing is indexed yet: the memory tools are not offered to models until it is.
