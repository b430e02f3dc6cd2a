//! One layer of the network: attention, then a feed-forward part, each added to its input and
//! normalised.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, Axis, Slice, concatenate};

use crate::config::ModelConfig;
use crate::embeddings::norm;
use crate::error::ModelError;
use crate::math::{LayerNorm, Linear, float, gelu, softmax};
use crate::weights::Weights;

#[derive(Debug)]
pub(crate) struct Layer {
    /// Queries, keys and values in one.
    attention: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    output_norm: LayerNorm,
    heads: usize,
}

/// Memory that the layers of one text use one after another.
#[derive(Debug)]
pub(crate) struct Scratch {
    attention: Array2<f32>,
    scores: Array2<f32>,
    context: Array2<f32>,
    intermediate: Array2<f32>,
    output: Array2<f32>,
}

impl Scratch {
    /// Memory for texts of this many tokens.
    pub(crate) fn new(config: &ModelConfig, tokens: usize) -> Self {
        let zeros = |columns| Array2::zeros((tokens, columns));
        Self {
            attention: zeros(3 * config.hidden),
            scores: zeros(tokens),
            context: zeros(config.hidden),
            intermediate: zeros(config.feed_forward),
            output: zeros(config.hidden),
        }
    }
}

impl Layer {
    pub(crate) fn read(weights: &Weights, config: &ModelConfig, at: usize) -> Result<Self, ModelError> {
        let name = |part: &str| format!("encoder.layer.{at}.{part}");
        let (hidden, feed_forward) = (config.hidden, config.feed_forward);
        let linear = |part: &str, outputs: usize, inputs: usize| {
            let weight = weights.matrix(&format!("{}.weight", name(part)), outputs, inputs)?;
            let bias = weights.vector(&[&format!("{}.bias", name(part))], outputs)?;
            Ok::<_, ModelError>((weight, bias))
        };
        let dense = |part: &str, outputs: usize, inputs: usize| {
            linear(part, outputs, inputs).map(|(weight, bias)| Linear::new(&weight, bias))
        };
        let (query, query_bias) = linear("attention.self.query", hidden, hidden)?;
        let (key, key_bias) = linear("attention.self.key", hidden, hidden)?;
        let (value, value_bias) = linear("attention.self.value", hidden, hidden)?;
        let fused = concatenate(Axis(0), &[query.view(), key.view(), value.view()]);
        // Three matrices of the same width always fit.
        let fused = fused.unwrap_or_else(|_| Array2::zeros((3 * hidden, hidden)));
        Ok(Self {
            attention: Linear::new(&fused, [query_bias, key_bias, value_bias].concat()),
            attention_output: dense("attention.output.dense", hidden, hidden)?,
            attention_norm: norm(weights, &name("attention.output.LayerNorm"), config)?,
            intermediate: dense("intermediate.dense", feed_forward, hidden)?,
            output: dense("output.dense", hidden, feed_forward)?,
            output_norm: norm(weights, &name("output.LayerNorm"), config)?,
            heads: config.heads,
        })
    }

    /// Replaces the rows of a text by those behind this layer.
    pub(crate) fn apply(&self, rows: &mut ArrayViewMut2<'_, f32>, scratch: &mut Scratch) {
        let tokens = rows.nrows();
        let mut attention = first_rows(&mut scratch.attention, tokens);
        self.attention.apply(&rows.view(), &mut attention);
        let mut context = first_rows(&mut scratch.context, tokens);
        let mut scores = first_rows(&mut scratch.scores, tokens);
        let mut scores = scores.slice_axis_mut(Axis(1), Slice::from(..tokens));
        self.attend(&attention, &mut scores, &mut context);
        let mut output = first_rows(&mut scratch.output, tokens);
        self.attention_output.apply(&context.view(), &mut output);
        add_and_norm(rows, &output, &self.attention_norm);
        let mut intermediate = first_rows(&mut scratch.intermediate, tokens);
        self.intermediate.apply(&rows.view(), &mut intermediate);
        intermediate.rows_mut().into_iter().filter_map(|row| row.into_slice()).for_each(gelu);
        self.output.apply(&intermediate.view(), &mut output);
        add_and_norm(rows, &output, &self.output_norm);
    }

    /// Each token takes from the values of all tokens, head by head.
    fn attend(
        &self,
        attention: &ArrayViewMut2<'_, f32>,
        scores: &mut ArrayViewMut2<'_, f32>,
        context: &mut ArrayViewMut2<'_, f32>,
    ) {
        let hidden = self.attention.outputs() / 3;
        let width = hidden / self.heads;
        let scale = 1.0 / float(width).sqrt();
        for head in 0..self.heads {
            let part = |at: usize| {
                let from = at * hidden + head * width;
                attention.slice_axis(Axis(1), Slice::from(from..from + width))
            };
            let (query, key, value) = (part(0), part(1), part(2));
            general_mat_mul(scale, &query, &key.t(), 0.0, scores);
            for mut row in scores.rows_mut() {
                if let Some(row) = row.as_slice_mut() {
                    softmax(row);
                }
            }
            let from = head * width;
            let mut into = context.slice_axis_mut(Axis(1), Slice::from(from..from + width));
            general_mat_mul(1.0, &scores.view(), &value, 0.0, &mut into);
        }
    }
}

/// The first rows of a matrix that has room for more.
pub(crate) fn first_rows(matrix: &mut Array2<f32>, rows: usize) -> ArrayViewMut2<'_, f32> {
    matrix.slice_axis_mut(Axis(0), Slice::from(..rows))
}

fn add_and_norm(rows: &mut ArrayViewMut2<'_, f32>, added: &ArrayViewMut2<'_, f32>, norm: &LayerNorm) {
    *rows += added;
    rows.rows_mut().into_iter().filter_map(|row| row.into_slice()).for_each(|row| norm.apply(row));
}
