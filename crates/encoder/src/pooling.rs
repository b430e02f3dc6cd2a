//! Makes one vector of the rows of a text.

use std::collections::BTreeMap;

use ndarray::ArrayView2;
use serde_json::Value;

use crate::math::float;

/// Kind of pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooling {
    /// Mean of all rows.
    Mean,
    /// Row of the first token.
    First,
}

impl Pooling {
    /// Reads the switches of `1_Pooling/config.json`, of which one may be on.
    pub(crate) fn of(raw: &BTreeMap<String, Value>) -> Result<Self, String> {
        let on = |(name, value): (&String, &Value)| {
            (name.starts_with("pooling_mode_") && *value == Value::Bool(true)).then(|| name.clone())
        };
        let modes: Vec<String> = raw.iter().filter_map(on).collect();
        match modes.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] | ["pooling_mode_mean_tokens"] => Ok(Self::Mean),
            ["pooling_mode_cls_token"] => Ok(Self::First),
            others => Err(format!("its pooling ({}) is not supported, only mean and cls", others.join(", "))),
        }
    }

    pub(crate) fn pool(self, rows: &ArrayView2<'_, f32>) -> Vec<f32> {
        match self {
            Self::First => rows.rows().into_iter().next().map(|row| row.to_vec()).unwrap_or_default(),
            Self::Mean => {
                let mut mean = vec![0.0_f32; rows.ncols()];
                for row in rows.rows() {
                    mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                }
                let scale = 1.0 / float(rows.nrows().max(1));
                mean.iter_mut().for_each(|x| *x *= scale);
                mean
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_kind_of_pooling_is_read_and_others_are_refused() {
        let rows = [
            (json!({}), Ok(Pooling::Mean)),
            (json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false}), Ok(Pooling::Mean)),
            (json!({"pooling_mode_cls_token": true}), Ok(Pooling::First)),
            (json!({"pooling_mode_max_tokens": true}), Err("pooling_mode_max_tokens")),
            (json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}), Err("mean_tokens")),
        ];
        for (raw, expect) in rows {
            let found = Pooling::of(&serde_json::from_value(raw.clone()).unwrap());
            match (found, expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found, expect, "{raw}"),
                (Err(found), Err(expect)) => assert!(found.contains(expect), "{found}"),
                (found, expect) => panic!("{raw}: {found:?} {expect:?}"),
            }
        }
    }

    #[test]
    fn rows_are_pooled() {
        let rows = ndarray::arr2(&[[1.0_f32, 2.0], [3.0, 6.0]]);
        assert_eq!(Pooling::Mean.pool(&rows.view()), [2.0, 4.0]);
        assert_eq!(Pooling::First.pool(&rows.view()), [1.0, 2.0]);
    }
}
