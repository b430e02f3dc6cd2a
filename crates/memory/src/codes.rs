//! One bit for each dimension of a vector, and an estimate of the cosine from it.
//!
//! A vector of 768 dimensions takes 100 bytes in memory instead of 3,072, so that 100,000 of them fit beside the gateway.
//! It is turned by a fixed rotation, which spreads it evenly over all dimensions, and only the signs are kept,
//! with a factor that makes the estimate unbiased. The query keeps four bits for each dimension. The best candidates by
//! this estimate are compared exactly afterwards, from the file.

use pulp::Arch;

/// Bits of a query's dimension.
const PLANES: usize = 4;
const LARGEST_STEP: f32 = 15.0;

/// A rotation of vectors of one length: changes of signs and Hadamard transforms of the first and of the last part
/// whose length is a power of two. The same in every process.
#[derive(Debug, Clone)]
pub(crate) struct Rotation {
    dimensions: usize,
    /// Length of the parts that are transformed.
    part: usize,
    /// Signs before each round.
    signs: Vec<Vec<f32>>,
}

impl Rotation {
    const ROUNDS: usize = 4;

    pub(crate) fn new(dimensions: usize) -> Self {
        let part = if dimensions == 0 { 0 } else { 1 << dimensions.ilog2() };
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut sign = || {
            // splitmix64.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            if (mixed ^ (mixed >> 31)) & 1 == 0 { 1.0 } else { -1.0 }
        };
        let signs = (0..Self::ROUNDS).map(|_| (0..dimensions).map(|_| sign()).collect()).collect();
        Self { dimensions, part, signs }
    }

    /// Turns `vector` in place. Its length does not change.
    fn turn(&self, vector: &mut [f32]) {
        for (round, signs) in self.signs.iter().enumerate() {
            vector.iter_mut().zip(signs).for_each(|(value, sign)| *value *= sign);
            let start = if round % 2 == 0 { 0 } else { self.dimensions - self.part };
            if let Some(part) = vector.get_mut(start..start + self.part) {
                hadamard(part);
            }
        }
    }
}

/// The Walsh–Hadamard transform, scaled so that lengths stay. The number of values is a power of two.
fn hadamard(values: &mut [f32]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(half * 2) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    let scale = 1.0 / (values.len() as f32).sqrt();
    values.iter_mut().for_each(|value| *value *= scale);
}

/// Rule by which vectors of one index become codes.
#[derive(Debug, Clone)]
pub(crate) struct Codebook {
    rotation: Rotation,
    /// Mean of the vectors, or zeros. Codes say how a vector differs from it.
    centre: Vec<f32>,
}

/// The signs of a vector and the factor of its estimate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub(crate) words: Vec<u64>,
    pub(crate) factor: f32,
}

impl Codebook {
    pub(crate) fn new(dimensions: usize, centre: Option<Vec<f32>>) -> Self {
        let centre =
            centre.filter(|centre| centre.len() == dimensions).unwrap_or_else(|| vec![0.0; dimensions]);
        Self { rotation: Rotation::new(dimensions), centre }
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.centre.len()
    }

    /// Returns how many candidates by estimate are to be compared exactly: more of short vectors, whose estimates are
    /// less sure and whose comparison costs less.
    pub(crate) fn rescored(&self) -> usize {
        (400 * 512 / self.dimensions().max(1)).clamp(400, 2_000)
    }

    /// Returns the number of words of a code.
    pub(crate) fn words(&self) -> usize {
        self.dimensions().div_ceil(64)
    }

    /// Returns the code of a vector of length one.
    pub(crate) fn code(&self, vector: &[f32]) -> Code {
        let mut turned: Vec<f32> =
            vector.iter().zip(&self.centre).map(|(value, mean)| value - mean).collect();
        turned.resize(self.dimensions(), 0.0);
        self.rotation.turn(&mut turned);
        let mut words = vec![0_u64; self.words()];
        for (word, values) in words.iter_mut().zip(turned.chunks(64)) {
            for (bit, value) in values.iter().enumerate() {
                *word |= u64::from(*value > 0.0) << bit;
            }
        }
        let square: f32 = turned.iter().map(|value| value * value).sum();
        let sum: f32 = turned.iter().map(|value| value.abs()).sum();
        // With s the signs, <q, v> is about <q, s> · |v|² / <s, v>.
        Code { words, factor: if sum > 0.0 { square / sum } else { 0.0 } }
    }

    /// Prepares a query of length one.
    pub(crate) fn query(&self, vector: &[f32]) -> CodedQuery {
        let mut turned = vector.to_vec();
        turned.resize(self.dimensions(), 0.0);
        let base = turned.iter().zip(&self.centre).map(|(value, mean)| value * mean).sum();
        self.rotation.turn(&mut turned);
        let (low, high) = turned
            .iter()
            .fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        let step = ((high - low) / LARGEST_STEP).max(f32::MIN_POSITIVE);
        let words = self.words();
        let mut planes = vec![0_u64; words * PLANES];
        for (index, value) in turned.iter().enumerate() {
            let level = ((value - low) / step).round().clamp(0.0, LARGEST_STEP) as u64;
            for plane in 0..PLANES {
                if let Some(word) = planes.get_mut(plane * words + index / 64) {
                    *word |= (level >> plane & 1) << (index % 64);
                }
            }
        }
        CodedQuery { planes, words, low, step, sum: turned.iter().sum(), base }
    }
}

/// A query whose inner products with codes are estimated.
#[derive(Debug, Clone)]
pub(crate) struct CodedQuery {
    /// Bits of all dimensions, the lowest bits first.
    planes: Vec<u64>,
    words: usize,
    low: f32,
    step: f32,
    /// Sum of the turned query.
    sum: f32,
    /// Inner product of the query with the centre.
    base: f32,
}

impl CodedQuery {
    /// Writes an estimate for each code into `out`. `codes` holds the words of one code behind another.
    pub(crate) fn estimate(&self, codes: &[u64], factors: &[f32], out: &mut Vec<f32>) {
        out.clear();
        if self.words == 0 {
            out.resize(factors.len(), 0.0);
            return;
        }
        out.reserve(factors.len());
        match self.words {
            6 => self.estimate_fixed::<6>(codes, factors, out),
            12 => self.estimate_fixed::<12>(codes, factors, out),
            16 => self.estimate_fixed::<16>(codes, factors, out),
            24 => self.estimate_fixed::<24>(codes, factors, out),
            48 => self.estimate_fixed::<48>(codes, factors, out),
            _ => self.estimate_any(codes, factors, out),
        }
    }

    fn estimate_any(&self, codes: &[u64], factors: &[f32], out: &mut Vec<f32>) {
        // What is inlined here is compiled for the instructions that the processor has.
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for (code, factor) in codes.chunks_exact(self.words).zip(factors) {
                    let mut counts = [0_u64; PLANES];
                    for (plane, count) in self.planes.chunks_exact(self.words).zip(&mut counts) {
                        *count = plane
                            .iter()
                            .zip(code)
                            .map(|(plane, word)| u64::from((plane & word).count_ones()))
                            .sum();
                    }
                    let ones: u64 = code.iter().map(|word| u64::from(word.count_ones())).sum();
                    out.push(self.value(counts, ones, *factor));
                }
            },
        );
    }

    /// The same for a length that the compiler knows.
    fn estimate_fixed<const WORDS: usize>(&self, codes: &[u64], factors: &[f32], out: &mut Vec<f32>) {
        let mut planes = [[0_u64; WORDS]; PLANES];
        for (plane, words) in planes.iter_mut().zip(self.planes.chunks_exact(WORDS)) {
            plane.copy_from_slice(words);
        }
        let (codes, _) = codes.as_chunks::<WORDS>();
        out.resize(factors.len(), 0.0);
        let out = out.as_mut_slice();
        Arch::new().dispatch(
            #[inline(always)]
            || {
                // A loop: what an iterator would call is not compiled for the instructions of this processor.
                for ((code, factor), estimate) in codes.iter().zip(factors).zip(out) {
                    let mut counts = [0_u64; PLANES];
                    let mut ones = 0;
                    for word in code {
                        ones += u64::from(word.count_ones());
                    }
                    for (plane, count) in planes.iter().zip(&mut counts) {
                        for (plane, word) in plane.iter().zip(code) {
                            *count += u64::from((plane & word).count_ones());
                        }
                    }
                    *estimate = self.value(counts, ones, *factor);
                }
            },
        );
    }

    #[inline(always)]
    fn value(&self, counts: [u64; PLANES], ones: u64, factor: f32) -> f32 {
        let [a, b, c, d] = counts;
        // Sum of the query over the dimensions whose sign is positive.
        let positive = self.low * ones as f32 + self.step * (a + 2 * b + 4 * c + 8 * d) as f32;
        self.base + factor * (2.0 * positive - self.sum)
    }
}

/// Returns the cosine of two vectors of length one, of which the shorter one ends the comparison.
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let length = left.len().min(right.len());
    let (left, right) = (left.get(..length).unwrap_or_default(), right.get(..length).unwrap_or_default());
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<32>(), right.as_chunks::<32>());
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum();
    Arch::new().dispatch(
        #[inline(always)]
        || {
            let mut sums = [0.0_f32; 32];
            for (a, b) in left.iter().zip(right) {
                for ((sum, x), y) in sums.iter_mut().zip(a).zip(b) {
                    *sum += x * y;
                }
            }
            sums.iter().sum::<f32>() + rest
        },
    )
}

/// Scales `vector` to length one. Returns `None` for vectors without a direction: empty, zero, or not finite.
pub(crate) fn normalised(vector: &[f32]) -> Option<Vec<f32>> {
    let square: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    if !square.is_finite() || square <= 0.0 {
        return None;
    }
    let scale = 1.0 / square.sqrt();
    Some(vector.iter().map(|value| (f64::from(*value) * scale) as f32).collect())
}

/// Reads the numbers of a vector.
pub(crate) fn read_vector(bytes: &[u8], values: &mut Vec<f32>) {
    values.clear();
    values.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
}

/// Returns a vector as bytes.
pub(crate) fn vector_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns a code as bytes: the factor, then the words.
pub(crate) fn code_bytes(code: &Code) -> Vec<u8> {
    let words = code.words.iter().flat_map(|word| word.to_le_bytes());
    code.factor.to_le_bytes().into_iter().chain(words).collect()
}

/// Reads the factor and the words of a code, or `None` if it has another length.
pub(crate) fn read_code(bytes: &[u8], words: usize) -> Option<(f32, impl Iterator<Item = u64> + '_)> {
    let (factor, rest) = bytes.split_first_chunk::<4>()?;
    let (read, left) = rest.as_chunks::<8>();
    (read.len() == words && left.is_empty())
        .then(|| (f32::from_le_bytes(*factor), read.iter().map(|word| u64::from_le_bytes(*word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values between -1 and 1, by a seed.
    fn noise(seed: u64) -> impl FnMut() -> f32 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        }
    }

    #[test]
    fn a_rotation_keeps_lengths_and_angles() {
        for dimensions in [1, 2, 3, 64, 100, 384, 768, 1536] {
            let mut noise = noise(7);
            let rotation = Rotation::new(dimensions);
            let mut a: Vec<f32> = (0..dimensions).map(|_| noise()).collect();
            let mut b: Vec<f32> = (0..dimensions).map(|_| noise()).collect();
            let before = (dot(&a, &a), dot(&a, &b));
            rotation.turn(&mut a);
            rotation.turn(&mut b);
            let after = (dot(&a, &a), dot(&a, &b));
            assert!(
                (before.0 - after.0).abs() < 1e-3 && (before.1 - after.1).abs() < 1e-3,
                "{dimensions}: {before:?} {after:?}"
            );
        }
    }

    /// The nearest by exact comparison are among the best by estimate, with a mean that is far from zero, as real
    /// models have, and for every path through [`CodedQuery::estimate`].
    #[test]
    fn estimates_keep_the_nearest_among_the_best() {
        for dimensions in [64, 100, 384, 768] {
            let mut noise = noise(3);
            let mean: Vec<f32> = (0..dimensions).map(|_| noise() * 0.8).collect();
            let mut vector =
                || normalised(&mean.iter().map(|mean| mean + noise()).collect::<Vec<_>>()).unwrap();
            let vectors: Vec<Vec<f32>> = (0..5_000).map(|_| vector()).collect();
            let query = vector();
            let centre = (0..dimensions)
                .map(|index| vectors.iter().map(|vector| vector[index]).sum::<f32>() / 5_000.0)
                .collect();
            let codebook = Codebook::new(dimensions, Some(centre));
            let codes: Vec<Code> = vectors.iter().map(|vector| codebook.code(vector)).collect();
            let words: Vec<u64> = codes.iter().flat_map(|code| code.words.clone()).collect();
            let factors: Vec<f32> = codes.iter().map(|code| code.factor).collect();
            let mut estimates = Vec::new();
            codebook.query(&query).estimate(&words, &factors, &mut estimates);
            let best = |scores: &[f32], count: usize| {
                let mut order: Vec<usize> = (0..scores.len()).collect();
                order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
                order.truncate(count);
                order
            };
            let exact: Vec<f32> = vectors.iter().map(|vector| dot(vector, &query)).collect();
            let kept = best(&estimates, codebook.rescored());
            let found = best(&exact, 10).iter().filter(|index| kept.contains(index)).count();
            assert!(found >= 9, "{dimensions}: {found} of 10");
            let bias: f32 =
                estimates.iter().zip(&exact).map(|(estimate, exact)| estimate - exact).sum::<f32>() / 5_000.0;
            assert!(bias.abs() < 0.01, "{dimensions}: {bias}");
        }
    }

    #[test]
    fn vectors_without_a_direction_are_refused() {
        assert_eq!(normalised(&[]), None);
        assert_eq!(normalised(&[0.0, 0.0]), None);
        assert_eq!(normalised(&[f32::NAN, 1.0]), None);
        assert_eq!(normalised(&[f32::INFINITY]), None);
        assert_eq!(normalised(&[3.0, 4.0]), Some(vec![0.6, 0.8]));
    }
}
