//! The `vec0` tables of sqlite-vec, linked into the program, for a connection of rusqlite.
//!
//! OpenClaw 2026.2.9 keeps the vectors of a memory index in such a table, which SQLite alone can neither read nor write.
//! Linking sqlite-vec needs one call of a C function: it is all the `unsafe` code of this crate.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use rusqlite::{Connection, ffi};
// Links the library.
use sqlite_vec as _;

unsafe extern "C" {
    fn sqlite3_vec_init(db: *mut ffi::sqlite3, message: *mut *mut c_char, api: *const c_void) -> c_int;
}

/// Lets `connection` use tables of the module `vec0`, and the functions of sqlite-vec.
///
/// # Errors
///
/// SQLite has no memory left.
pub fn register(connection: &Connection) -> rusqlite::Result<()> {
    let mut message: *mut c_char = ptr::null_mut();
    // SAFETY: this is the declaration of `sqlite-vec.h`. The handle is that of an open connection and is not kept by us:
    // modules and functions that are registered belong to the connection and end with it. `message` outlives the call and
    // is written by it at most once; it is freed below by SQLite's own function, which takes null too. sqlite-vec is built
    // into the program (`SQLITE_CORE`), so it calls SQLite directly and never reads `api`.
    let code = unsafe {
        let code = sqlite3_vec_init(connection.handle(), &raw mut message, ptr::null());
        ffi::sqlite3_free(message.cast());
        code
    };
    if code == ffi::SQLITE_OK {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_vectors_is_written_searched_and_dropped() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(connection.execute_batch("CREATE VIRTUAL TABLE v USING vec0(a FLOAT[2])").is_err());
        register(&connection).unwrap();
        connection
            .execute_batch("CREATE VIRTUAL TABLE v USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[2])")
            .unwrap();
        for (id, vector) in [("a", [0.0_f32, 1.0]), ("b", [1.0, 0.0])] {
            let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
            connection.execute("INSERT INTO v VALUES (?1, ?2)", rusqlite::params![id, bytes]).unwrap();
        }
        let sql = "SELECT id FROM v ORDER BY vec_distance_cosine(embedding, '[1, 0.1]') LIMIT 1";
        assert_eq!(connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap(), "b");
        connection.execute_batch("DROP TABLE v").unwrap();
        // Each connection is registered by itself, and more than once does no harm.
        register(&connection).unwrap();
        register(&Connection::open_in_memory().unwrap()).unwrap();
    }
}
