//! Numbers that an index counts on, and what its own tables were made with.

use rusqlite::{Connection, OptionalExtension, params};

use crate::chunk::CHUNKER_VERSION;
use crate::codes::{Codebook, read_vector, vector_bytes};
use crate::db::StoreError;
use crate::words::WORDS_VERSION;

/// Version of our own tables. Others are dropped and made anew.
const FORMAT: i64 = 1;

/// Numbers that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    /// Grows with each change.
    pub(crate) revision: i64,
    /// Grows when what was read before is of no use any more.
    pub(crate) epoch: i64,
    /// Number of the next document.
    pub(crate) next_doc: i64,
    /// Number of the next segment.
    pub(crate) next_segment: i64,
}

/// Sums over the other program's tables, taken when ours were last in step with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    /// Number of chunks.
    pub(crate) chunks: i64,
    /// Sum of their rows.
    pub(crate) rows: i64,
    /// Sum over the paths and hashes of all files.
    pub(crate) files: i64,
}

impl Stamp {
    /// Returns what a file adds to [`Stamp::files`].
    pub(crate) fn of_file(path: &str, hash: &str) -> i64 {
        // FNV-1a.
        let bytes = path.bytes().chain([0]).chain(hash.bytes());
        let sum = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        i64::from_ne_bytes(sum.to_ne_bytes())
    }

    /// Reads what the tables hold now.
    pub(crate) fn actual(connection: &Connection) -> Result<Self, StoreError> {
        let sql = "SELECT count(*), total(rowid) FROM chunks INDEXED BY idx_chunks_source";
        let (chunks, rows) =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get::<_, f64>(1)? as i64)))?;
        let mut files = 0_i64;
        let mut read = connection.prepare_cached("SELECT path, hash FROM files")?;
        let mut read = read.query([])?;
        while let Some(row) = read.next()? {
            let (path, hash) =
                (row.get_ref(0)?.as_str().unwrap_or_default(), row.get_ref(1)?.as_str().unwrap_or_default());
            files = files.wrapping_add(Self::of_file(path, hash));
        }
        Ok(Self { chunks, rows, files })
    }
}

/// Reads the numbers; all are 0 in a new file.
pub(crate) fn read(connection: &Connection) -> Result<Counters, StoreError> {
    Ok(Counters {
        revision: number(connection, "revision")?.unwrap_or_default(),
        epoch: number(connection, "epoch")?.unwrap_or_default(),
        next_doc: number(connection, "next_doc")?.unwrap_or_default(),
        next_segment: number(connection, "next_segment")?.unwrap_or_default(),
    })
}

/// Writes the numbers and the stamp.
pub(crate) fn write(connection: &Connection, counters: &Counters, stamp: &Stamp) -> Result<(), StoreError> {
    let rows = [
        ("revision", counters.revision),
        ("epoch", counters.epoch),
        ("next_doc", counters.next_doc),
        ("next_segment", counters.next_segment),
        ("stamp_chunks", stamp.chunks),
        ("stamp_rows", stamp.rows),
        ("stamp_files", stamp.files),
    ];
    rows.iter().try_for_each(|(key, value)| set_number(connection, key, *value))
}

/// Reads the stamp that was written last.
pub(crate) fn stamp(connection: &Connection) -> Result<Option<Stamp>, StoreError> {
    let [chunks, rows, files] =
        ["stamp_chunks", "stamp_rows", "stamp_files"].map(|key| number(connection, key));
    Ok(match (chunks?, rows?, files?) {
        (Some(chunks), Some(rows), Some(files)) => Some(Stamp { chunks, rows, files }),
        _ => None,
    })
}

/// Returns whether our own tables were made by this version.
pub(crate) fn is_current(connection: &Connection) -> Result<bool, StoreError> {
    Ok(number(connection, "format")? == Some(FORMAT)
        && number(connection, "words")? == Some(i64::from(WORDS_VERSION)))
}

/// Records that our own tables are made by this version.
pub(crate) fn set_current(connection: &Connection) -> Result<(), StoreError> {
    set_number(connection, "format", FORMAT)?;
    set_number(connection, "words", i64::from(WORDS_VERSION))
}

/// Returns the version of the chunker that made the chunks, or `None` if another program made them.
pub(crate) fn chunker(connection: &Connection) -> Result<Option<i64>, StoreError> {
    number(connection, "chunker")
}

/// Records that this version's chunker made the chunks.
pub(crate) fn set_chunker(connection: &Connection) -> Result<(), StoreError> {
    set_number(connection, "chunker", i64::from(CHUNKER_VERSION))
}

/// Reads how vectors become codes, or `None` if there are no vectors yet.
pub(crate) fn codebook(connection: &Connection) -> Result<Option<Codebook>, StoreError> {
    let Some(dimensions) = number(connection, "dimensions")?.and_then(|number| usize::try_from(number).ok())
    else {
        return Ok(None);
    };
    let mut row = connection.prepare_cached("SELECT value FROM openclaw_meta WHERE key = 'centre'")?;
    let centre: Option<Vec<u8>> = row.query_row([], |row| row.get(0)).optional()?;
    let centre = centre.map(|bytes| {
        let mut values = Vec::new();
        read_vector(&bytes, &mut values);
        values
    });
    Ok(Some(Codebook::new(dimensions, centre)))
}

/// Records how vectors become codes. `count` is the number of vectors that `centre` is the mean of.
pub(crate) fn set_codebook(
    connection: &Connection,
    dimensions: usize,
    centre: Option<&[f32]>,
    count: i64,
) -> Result<(), StoreError> {
    set_number(connection, "dimensions", i64::try_from(dimensions).unwrap_or(i64::MAX))?;
    set_number(connection, "centre_count", count)?;
    match centre {
        Some(centre) => set(connection, "centre", &vector_bytes(centre)),
        None => Ok(connection.execute("DELETE FROM openclaw_meta WHERE key = 'centre'", []).map(|_| ())?),
    }
}

/// Removes what was recorded of vectors.
pub(crate) fn clear_codebook(connection: &Connection) -> Result<(), StoreError> {
    connection
        .execute("DELETE FROM openclaw_meta WHERE key IN ('dimensions', 'centre', 'centre_count')", [])?;
    Ok(())
}

/// Reads a number of [`Counters`] or another one that is kept beside them.
pub(crate) fn number(connection: &Connection, key: &str) -> Result<Option<i64>, StoreError> {
    let mut row = connection.prepare_cached("SELECT value FROM openclaw_meta WHERE key = ?1")?;
    Ok(row.query_row([key], |row| row.get(0)).optional()?)
}

/// Reads a text that is kept beside [`Counters`].
pub(crate) fn text(connection: &Connection, key: &str) -> Result<Option<String>, StoreError> {
    let mut row = connection.prepare_cached("SELECT value FROM openclaw_meta WHERE key = ?1")?;
    Ok(row.query_row([key], |row| row.get(0)).optional()?)
}

/// Writes a text.
pub(crate) fn set_text(connection: &Connection, key: &str, text: &str) -> Result<(), StoreError> {
    set(connection, key, &text)
}

/// Removes a number or a text.
pub(crate) fn remove(connection: &Connection, key: &str) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM openclaw_meta WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Writes a number.
pub(crate) fn set_number(connection: &Connection, key: &str, number: i64) -> Result<(), StoreError> {
    set(connection, key, &number)
}

fn set(connection: &Connection, key: &str, value: &dyn rusqlite::ToSql) -> Result<(), StoreError> {
    let mut row = connection.prepare_cached(
        "INSERT INTO openclaw_meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )?;
    row.execute(params![key, value])?;
    Ok(())
}
