//! End-to-end tests: the real binary, as a user would start it.
