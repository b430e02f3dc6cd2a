//! Makes a static table of an uncased WordPiece model, by Model2Vec's method:
//!
//! ```text
//! cargo run --release -p openclaw-encoder --example static_table -- MODEL_DIRECTORY TABLE
//! ```
//!
//! Each token is encoded alone; the vectors are reduced to their 256 most telling directions, those
//! of frequent tokens are made shorter, and all are written with eight bits for each number. A
//! vocabulary has its tokens in the order of their frequency.

#![expect(clippy::print_stdout, reason = "a tool that tells what it does")]

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use ndarray::{Array1, Array2, Axis};
use openclaw_encoder::{Encoder, StaticTable};

/// Directions that are kept.
const DIMENSIONS: usize = 256;
/// Rounds in which the directions are found.
const ROUNDS: usize = 30;
/// Weight of a token: a / (a + its probability).
const A: f64 = 1e-4;
/// Tokens that are encoded at a time.
const AT_A_TIME: usize = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [model, out] = arguments.as_slice() else {
        return Err("expected a model directory and the path of the table".into());
    };
    let encoder = Encoder::open(model)?;
    let vocabulary = std::fs::read_to_string(model.join("vocab.txt"))?;
    let words: Vec<&str> = vocabulary.lines().collect();
    let place = |mark: &str| words.iter().position(|word| *word == mark).ok_or("a mark is missing");
    let (begin, end) = (u32::try_from(place("[CLS]")?)?, u32::try_from(place("[SEP]")?)?);
    // Tokens that no text has are left out; ids are positions in what remains.
    let kept: Vec<(u32, &str)> = (0..).zip(words).filter(|(_, word)| !word.starts_with("[unused")).collect();
    let mut vectors = Vec::with_capacity(kept.len());
    for some in kept.chunks(AT_A_TIME) {
        let tokens = some.iter().map(|(id, _)| vec![begin, *id, end]).collect();
        vectors.extend(encoder.encode_tokens(tokens, &AtomicBool::new(false))?);
        println!("{} of {} tokens", vectors.len(), kept.len());
    }
    let width = encoder.dimensions();
    let all = Array2::from_shape_vec((vectors.len(), width), vectors.concat())?;
    let reduced = reduce(all, DIMENSIONS.min(width));
    let rows: Vec<Vec<f32>> = reduced
        .rows()
        .into_iter()
        .zip(weights(kept.len()))
        .map(|(row, weight)| row.iter().map(|number| number * weight).collect())
        .collect();
    let kept: Vec<&str> = kept.into_iter().map(|(_, word)| word).collect();
    let table = StaticTable::write(&kept.join("\n"), &rows);
    println!("{} bytes", table.len());
    std::fs::write(out, table)?;
    Ok(())
}

/// Weights by rank: the n-th token is as frequent as 1/n says.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "tens of thousands")]
fn weights(count: usize) -> Vec<f32> {
    let all: f64 = (1..=count).map(|rank| 1.0 / (rank + 1) as f64).sum();
    (1..=count).map(|rank| (A / (A + 1.0 / (rank + 1) as f64 / all)) as f32).collect()
}

/// Moves the vectors to their centre and keeps the directions in which they differ most, found by
/// multiplying a basis with the covariance over and over.
fn reduce(mut vectors: Array2<f32>, dimensions: usize) -> Array2<f32> {
    let mean: Array1<f32> = vectors.mean_axis(Axis(0)).unwrap_or_default();
    vectors.rows_mut().into_iter().for_each(|mut row| row -= &mean);
    let covariance = vectors.t().dot(&vectors);
    let mut basis = Array2::from_shape_fn((covariance.nrows(), dimensions), |(row, column)| {
        let seed = u32::try_from(row * dimensions + column).unwrap_or(0).wrapping_mul(2_654_435_761) >> 16;
        f32::from(u16::try_from(seed).unwrap_or(0)) / 65_536.0 - 0.5
    });
    for _ in 0..ROUNDS {
        basis = covariance.dot(&basis);
        make_orthogonal(&mut basis);
    }
    vectors.dot(&basis)
}

fn make_orthogonal(basis: &mut Array2<f32>) {
    for at in 0..basis.ncols() {
        let mut column = basis.column(at).to_owned();
        for before in 0..at {
            let before = basis.column(before);
            let part = column.dot(&before);
            column.scaled_add(-part, &before);
        }
        let length = column.dot(&column).sqrt();
        if length > 0.0 {
            column /= length;
        }
        basis.column_mut(at).assign(&column);
    }
}
