//! Arithmetic of the network on rows of `f32`, written so that compilers vectorise it.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// Sums run in this many lanes: a strict sum of floats can't be vectorised.
const LANES: usize = 16;

/// A dense layer: `y = x · W + b`.
#[derive(Debug)]
pub(crate) struct Linear {
    /// Input by output.
    weight: Array2<f32>,
    bias: Vec<f32>,
}

impl Linear {
    /// Creates a layer from weights as files have them, output by input.
    pub(crate) fn new(weight: &Array2<f32>, bias: Vec<f32>) -> Self {
        Self { weight: weight.t().as_standard_layout().into_owned(), bias }
    }

    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Computes one row of outputs for each row of inputs.
    pub(crate) fn apply(&self, input: &ArrayView2<'_, f32>, output: &mut ArrayViewMut2<'_, f32>) {
        for mut row in output.rows_mut() {
            row.iter_mut().zip(&self.bias).for_each(|(y, b)| *y = *b);
        }
        general_mat_mul(1.0, input, &self.weight, 1.0, output);
    }
}

/// Scales a row to mean 0 and variance 1, then by learned weights.
#[derive(Debug)]
pub(crate) struct LayerNorm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) epsilon: f32,
}

impl LayerNorm {
    pub(crate) fn apply(&self, row: &mut [f32]) {
        let scale = 1.0 / float(row.len().max(1));
        let mean = sum(row, |x| x) * scale;
        let variance = sum(row, |x| (x - mean) * (x - mean)) * scale;
        let factor = 1.0 / (variance + self.epsilon).sqrt();
        for ((x, w), b) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
            *x = (*x - mean) * factor * w + b;
        }
    }
}

/// Replaces a row by its softmax.
pub(crate) fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|x| *x = exp(*x - largest));
    let scale = 1.0 / sum(row, |x| x);
    row.iter_mut().for_each(|x| *x *= scale);
}

/// Replaces each value by `x · Φ(x)`.
pub(crate) fn gelu(row: &mut [f32]) {
    row.iter_mut().for_each(|x| *x *= 0.5 * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2)));
}

/// Divides a vector by its length. Returns false if it has none, or is not of finite numbers.
pub(crate) fn normalize(vector: &mut [f32]) -> bool {
    let length = sum(vector, |x| x * x).sqrt();
    let usable = length.is_finite() && length > 1e-10;
    if usable {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    usable
}

fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let chunks = row.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().map(|x| of(*x)).sum();
    let mut lanes = [0.0_f32; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += of(*x));
    }
    lanes.iter().sum::<f32>() + rest
}

/// The error function by formula 7.1.26 of Abramowitz and Stegun: at most 2e-7 off.
fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let poly =
        t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    (1.0 - poly * exp(-a * a)).copysign(x)
}

/// `e^x` to about 2e-7 of its value: a power of two from the exponent's bits, the rest by a polynomial.
#[inline]
fn exp(x: f32) -> f32 {
    /// 1.5 · 2^23: adding it leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let scaled = x.clamp(-87.0, 88.0) * std::f32::consts::LOG2_E;
    let rounded = scaled + ROUND;
    let part = (scaled - (rounded - ROUND)) * std::f32::consts::LN_2;
    let power = f32::from_bits(rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    let poly = 1.0
        + part
            * (1.0
                + part
                    * (0.5 + part * (1.0 / 6.0 + part * (1.0 / 24.0 + part * (1.0 / 120.0 + part / 720.0)))));
    power * poly
}

/// A count as a number to divide by; counts here are far below 2^24.
#[expect(clippy::cast_precision_loss, reason = "widths and lengths are small")]
pub(crate) fn float(count: usize) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_close_to_those_of_the_library() {
        for step in -860..=870 {
            let x = step as f32 / 10.0;
            let (found, expect) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / expect - 1.0).abs() < 1e-5, "e^{x}: {found} {expect}");
        }
        assert!((0.0..1e-37).contains(&exp(f32::NEG_INFINITY)));
    }

    #[test]
    fn gelu_is_close_to_its_definition() {
        // x · Φ(x), from tables of the normal distribution.
        let rows = [
            (0.0, 0.0),
            (1.0, 0.841_344_8),
            (-1.0, -0.158_655_25),
            (2.0, 1.954_499_7),
            (-3.0, -0.004_049_694),
            (10.0, 10.0),
            (-10.0, 0.0),
        ];
        for (x, expect) in rows {
            let mut row = [x];
            gelu(&mut row);
            assert!((row[0] - expect).abs() < 2e-6, "{x}: {} {expect}", row[0]);
        }
    }

    #[test]
    fn softmax_sums_to_one_and_keeps_the_order() {
        let mut row: Vec<f32> = (0..37_u8).map(|n| f32::from(n) * 0.3 - 5.0).collect();
        softmax(&mut row);
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
        assert!(row.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_vector_without_length_is_not_normalized() {
        let rows = [
            (vec![3.0, 4.0], Some(vec![0.6, 0.8])),
            (vec![0.0; 20], None),
            (vec![f32::NAN, 1.0], None),
            (vec![f32::INFINITY, 1.0], None),
        ];
        for (mut vector, expect) in rows {
            let usable = normalize(&mut vector);
            assert_eq!(usable.then_some(vector), expect);
        }
    }
}
