//! Codes around the mean of the vectors. They are computed from a snapshot, without keeping others from writing.

use rusqlite::{Connection, OptionalExtension, params};

use super::IndexWriter;
use crate::codes::{Codebook, code_bytes, normalised, read_vector};
use crate::counters;
use crate::db::StoreError;
use crate::identity::IndexMeta;
use crate::steps::{Step, reached};

/// Vectors from which on their mean is worth knowing.
const CENTRE_FROM: i64 = 512;

/// Vectors of which the mean is taken.
const CENTRE_SAMPLE: i64 = 4_096;

/// New codes, computed from one state of the index.
struct NewCodes {
    /// Revision of that state.
    revision: i64,
    centre: Vec<f32>,
    /// Number of vectors that `centre` is the mean of.
    count: i64,
    codes: Vec<(i64, Vec<u8>)>,
}

/// Makes codes anew around the mean of the vectors, when there are many more of them than the last time. Blocks.
pub(crate) fn renew_codes(connection: &Connection, meta: &IndexMeta) -> Result<(), StoreError> {
    let snapshot = connection.unchecked_transaction()?;
    let new = compute(&snapshot)?;
    drop(snapshot);
    let Some(new) = new else { return Ok(()) };
    reached(Step::CodesComputed);
    let mut writer = IndexWriter::begin(connection, meta, true)?;
    // Another program has written meanwhile: the next time is soon enough.
    if writer.counters.revision == new.revision {
        writer.put_codes(&new)?;
        writer.commit()?;
    }
    Ok(())
}

fn compute(connection: &Connection) -> Result<Option<NewCodes>, StoreError> {
    let Some(codebook) = counters::codebook(connection)? else { return Ok(None) };
    let count: i64 = connection.query_row("SELECT count(*) FROM openclaw_codes", [], |row| row.get(0))?;
    let before = counters::number(connection, "centre_count")?.unwrap_or_default();
    if count < CENTRE_FROM || count < before.saturating_mul(4) {
        return Ok(None);
    }
    let centre = mean(connection, codebook.dimensions(), count)?;
    let codebook = Codebook::new(codebook.dimensions(), Some(centre.clone()));
    let mut codes = Vec::new();
    let mut documents = connection.prepare("SELECT doc FROM openclaw_codes")?;
    let mut documents = documents.query([])?;
    let mut read = connection.prepare_cached("SELECT vector FROM openclaw_vectors WHERE doc = ?1")?;
    let mut values = Vec::new();
    while let Some(row) = documents.next()? {
        let document: i64 = row.get(0)?;
        let bytes: Option<Vec<u8>> = read.query_row([document], |row| row.get(0)).optional()?;
        read_vector(&bytes.unwrap_or_default(), &mut values);
        if let Some(vector) = normalised(&values) {
            codes.push((document, code_bytes(&codebook.code(&vector))));
        }
    }
    Ok(Some(NewCodes { revision: counters::read(connection)?.revision, centre, count, codes }))
}

fn mean(connection: &Connection, dimensions: usize, count: i64) -> Result<Vec<f32>, StoreError> {
    let step = (count / CENTRE_SAMPLE).max(1);
    let mut sum = vec![0.0_f32; dimensions];
    let mut taken = 0.0_f32;
    let mut values = Vec::new();
    let mut rows = connection.prepare("SELECT vector FROM openclaw_vectors WHERE doc % ?1 = 0")?;
    let mut rows = rows.query([step])?;
    while let Some(row) = rows.next()? {
        read_vector(row.get_ref(0)?.as_blob().unwrap_or_default(), &mut values);
        if let Some(vector) = normalised(&values).filter(|vector| vector.len() == dimensions) {
            sum.iter_mut().zip(&vector).for_each(|(sum, value)| *sum += value);
            taken += 1.0;
        }
    }
    sum.iter_mut().for_each(|value| *value /= taken.max(1.0));
    Ok(sum)
}

impl IndexWriter<'_> {
    fn put_codes(&mut self, new: &NewCodes) -> Result<(), StoreError> {
        self.has_changed = true;
        counters::set_codebook(&self.transaction, new.centre.len(), Some(&new.centre), new.count)?;
        let mut write =
            self.transaction.prepare_cached("UPDATE openclaw_codes SET code = ?2 WHERE doc = ?1")?;
        for (document, code) in &new.codes {
            write.execute(params![document, code])?;
        }
        drop(write);
        self.codebook = Some(Codebook::new(new.centre.len(), Some(new.centre.clone())));
        self.counters.epoch += 1;
        reached(Step::CodesWritten);
        Ok(())
    }
}
