use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::settings::Scoring;
use crate::tests::{golden, near};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn hybrid(vector_weight: f64, text_weight: f64) -> HybridSettings {
    HybridSettings { vector_weight, text_weight, ..HybridSettings::default() }
}

#[test]
fn scores_of_keywords_are_those_recorded() {
    let text = golden("memory-text.json");
    for row in text["bm25_rank_to_score_2026_2_9"].as_array().unwrap() {
        near(compat_text_score(number(&row[0])), number(&row[1]), 1e-9);
    }
    for row in text["bm25_rank_to_score_later_upstream"].as_array().unwrap() {
        // A positive or zero rank does not come from the index here: weights are larger for better hits.
        let rank = number(&row[0]);
        if rank < 0.0 {
            near(text_score(-rank), number(&row[1]), 1e-9);
        }
    }
    near(text_score(f64::NAN), 0.001, 1e-9);
    for per_query in golden("memory-search.json")["per_query"].as_object().unwrap().values() {
        for hit in per_query["keyword_hits"].as_array().unwrap() {
            near(text_score(-number(&hit["bm25"])), number(&hit["score_fixed"]), 1e-8);
        }
    }
}

#[test]
fn weights_pools_and_merged_lists_are_those_recorded() {
    let ranking = golden("memory-ranking.json");
    for row in ranking["weights_normalised"].as_array().unwrap() {
        let (vector, text) = hybrid(number(&row["vectorWeight"]), number(&row["textWeight"])).weights();
        near(vector, number(&row["out"][0]), 1e-8);
        near(text, number(&row["out"][1]), 1e-8);
    }
    for row in ranking["candidates"].as_array().unwrap() {
        let max = number(&row["maxResults"]);
        // The number of results is whole here; fractions are cut where arguments are read.
        if max.fract() == 0.0 {
            assert_eq!(
                compat_pool(max as usize, number(&row["multiplier"]) as usize),
                number(&row["out"]) as usize
            );
        }
    }
    for row in ranking["merge"].as_array().unwrap() {
        let id = |pair: &Value| i64::from(pair[0].as_str().unwrap().as_bytes()[0]);
        let vectors: Vec<_> = row["vector"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| VectorCandidate { row: id(pair), cosine: number(&pair[1]) as f32 })
            .collect();
        let keywords: Vec<_> =
            row["keyword"].as_array().unwrap().iter().map(|pair| (id(pair), number(&pair[1]))).collect();
        let merged = compat_merge(&vectors, &keywords, &hybrid(number(&row["w"][0]), number(&row["w"][1])));
        let expect = row["out"].as_array().unwrap();
        assert_eq!(merged.len(), expect.len());
        for (scored, expect) in merged.iter().zip(expect) {
            assert_eq!(scored.row, id(expect));
            near(scored.score, number(&expect[1]), 1e-6);
        }
    }
}

#[test]
fn decay_and_days_are_those_recorded() {
    let ranking = golden("memory-ranking.json");
    for row in ranking["temporal_decay"].as_array().unwrap() {
        let made = decayed(number(&row["score"]), number(&row["ageDays"]), number(&row["halfLifeDays"]));
        near(made, number(&row["out"]), 1e-8);
    }
    for row in ranking["dated_path"].as_array().unwrap() {
        let day = dated_path(row[0].as_str().unwrap()).map(|day| day.to_string());
        assert_eq!(day.as_deref(), row[1].as_str(), "{row}");
    }
}

#[test]
fn importance_is_as_recorded() {
    for row in golden("memory-ranking.json")["importance_multiplier"].as_array().unwrap() {
        near(importance_factor(row[0].as_i64()), number(&row[1]), 1e-9);
    }
    let rows = [
        ("- the door code is 4711 <!-- importance: 9 -->", Some(9)),
        ("- a <!-- importance: 2 -->\n- b <!--importance:7-->\n", Some(7)),
        ("- a <!-- importance: high --> <!-- trigger: a -->", None),
        ("- a <!-- importance: 3", None),
        ("", None),
    ];
    for (text, mark) in rows {
        assert_eq!(importance_mark(text), mark, "{text}");
    }
}

#[test]
fn diversity_is_as_recorded() {
    let mmr = &golden("memory-ranking.json")["mmr"];
    let id = |value: &Value| i64::from(value.as_str().unwrap().as_bytes()[0]);
    let items = mmr["items"].as_array().unwrap();
    let texts =
        items.iter().map(|item| (id(&item["id"]), item["snippet"].as_str().unwrap().to_owned())).collect();
    let ranked: Vec<_> = items
        .iter()
        .map(|item| Scored {
            row: id(&item["id"]),
            score: number(&item["score"]),
            cosine: None,
            text: None,
            is_backed: false,
        })
        .collect();
    let order: Vec<i64> = diversify(&ranked, &texts, 0.7).iter().map(|scored| scored.row).collect();
    let expect: Vec<i64> =
        mmr["selection_order_with_mmr_score"].as_array().unwrap().iter().map(|pair| id(&pair[0])).collect();
    assert_eq!(order, expect);
    for row in golden("memory-text.json")["jaccard_later_upstream"].as_array().unwrap() {
        let tokens = |index: usize| text_tokens(row[index].as_str().unwrap());
        near(jaccard(&tokens(0), &tokens(1)), number(&row[2]), 1e-9);
    }
}

fn scored(row: i64, score: f64, text: Option<f64>, is_backed: bool) -> Scored {
    Scored { row, score, cosine: None, text, is_backed }
}

fn apart<'a>(row: i64) -> Option<ChunkLines<'a>> {
    let line = u32::try_from(row).ok()?;
    Some(ChunkLines { path: "memory/a.md", start: line * 10, end: line * 10 + 5 })
}

fn rows(selection: &HitSelection) -> Vec<i64> {
    selection.hits.iter().map(|hit| hit.row).collect()
}

#[test]
fn keyword_hits_fill_free_places_and_displace_nothing() {
    let ranked = [
        scored(1, 0.6, None, false),
        scored(2, 0.3, Some(0.4), true),
        scored(3, 0.2, Some(0.9), true),
        scored(4, 0.1, None, false),
    ];
    let three = select(&ranked, 3, 0.35, apart);
    assert_eq!((rows(&three), three.is_confident), (vec![1, 3, 2], true));
    assert_eq!(rows(&select(&ranked, 1, 0.35, apart)), [1]);
    let weak = select(&ranked, 6, 0.9, apart);
    assert_eq!((rows(&weak), weak.is_confident), (vec![3, 2], false));
}

#[test]
fn of_chunks_that_overlap_only_the_best_is_shown() {
    let ranked = [scored(1, 0.9, None, false), scored(2, 0.8, None, false), scored(3, 0.7, None, false)];
    let lines = |row: i64| {
        let start = u32::try_from(row).ok()? * 16;
        Some(ChunkLines { path: "memory/long.md", start, end: start + 19 })
    };
    assert_eq!(rows(&select(&ranked, 6, 0.35, lines)), [1, 3]);
}

#[test]
fn keywords_alone_are_not_weighted() {
    let keywords = [TextCandidate { row: 1, weight: 3.0, share: 0.1 }];
    let alone = merge(VectorLeg::Absent, &keywords, &HybridSettings::default());
    assert_eq!((alone[0].score, alone[0].is_backed), (0.75, true));
    let beside = merge(VectorLeg::Searched(&[]), &keywords, &HybridSettings::default());
    near(beside[0].score, 0.225, 1e-9);
    assert!(!beside[0].is_backed);
}

#[test]
fn cosines_that_hardly_differ_still_order_hits() {
    let vectors = [(1, 0.86), (2, 0.80), (3, 0.79)].map(|(row, cosine)| VectorCandidate { row, cosine });
    let keywords = [(3, 8.0), (2, 2.0)].map(|(row, weight)| TextCandidate { row, weight, share: 0.4 });
    let merged = merge(VectorLeg::Searched(&vectors), &keywords, &HybridSettings::default());
    assert_eq!(merged.iter().map(|scored| scored.row).collect::<Vec<_>>(), [1, 3, 2]);
    near(merged[0].score, 0.602, 1e-6);
    let same = [1, 2].map(|row| VectorCandidate { row, cosine: 0.5 });
    let merged = merge(VectorLeg::Searched(&same), &keywords, &HybridSettings::default());
    assert_eq!(merged[0].row, 2);
}

#[test]
fn fused_ranks_give_the_first_of_both_lists_the_score_one() {
    let settings = HybridSettings {
        fusion: Fusion::ReciprocalRank,
        scoring: Scoring::Corrected,
        ..HybridSettings::default()
    };
    let vectors = [VectorCandidate { row: 1, cosine: 0.2 }, VectorCandidate { row: 2, cosine: 0.1 }];
    let keywords = [TextCandidate { row: 1, weight: 1.0, share: 1.0 }];
    let merged = merge(VectorLeg::Searched(&vectors), &keywords, &settings);
    near(merged[0].score, 1.0, 1e-9);
    assert_eq!(merged[0].row, 1);
}

proptest! {
    #[test]
    fn the_first_hit_does_not_depend_on_how_many_are_asked_for(
        scores in proptest::collection::vec((0.0_f64..1.0, proptest::option::of(0.0_f64..1.0), any::<bool>()), 0..40),
        max in 1_usize..20,
    ) {
        let mut ranked: Vec<_> = scores.iter().zip(1..).map(|((score, text, backed), row)| scored(row, *score, *text, *backed && text.is_some())).collect();
        ranked.sort_by(descending);
        let one = select(&ranked, 1, 0.35, apart);
        let many = select(&ranked, max, 0.35, apart);
        prop_assert_eq!(one.hits.first(), many.hits.first());
        prop_assert!(many.hits.len() <= max);
    }
}

#[test]
fn a_hit_that_holds_the_words_has_a_place_among_hits_of_like_meaning() {
    let mut ranked: Vec<Scored> = (0..8).map(|row| scored(row, 0.7, None, false)).collect();
    ranked.push(scored(9, 0.26, Some(0.9), true));
    let place = |_| Some(ChunkLines { path: "", start: 1, end: 1 });
    let rows = |most, ranked: &[Scored]| -> Vec<i64> {
        let lines = |row: i64| {
            place(row).map(|lines| ChunkLines { start: row as u32 * 2, end: row as u32 * 2, ..lines })
        };
        select(ranked, most, 0.35, lines).hits.iter().map(|hit| hit.row).collect()
    };
    assert_eq!(rows(6, &ranked), [0, 1, 2, 3, 4, 9]);
    assert_eq!(rows(1, &ranked), [0]);
    ranked[2].is_backed = true;
    assert_eq!(rows(6, &ranked), [0, 1, 2, 3, 4, 5], "the words are there already");
}
