//! Answers of the web that are given again for a while.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

/// Answers that are kept.
const CAPACITY: usize = 100;

/// The last answers, the oldest first. A full one forgets the oldest.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<VecDeque<CacheEntry>>);

#[derive(Debug)]
struct CacheEntry {
    key: String,
    until: Instant,
    answer: Value,
}

impl Cache {
    /// The answer under this key, marked as one that was kept (spec `tools.md` §5.1).
    pub(crate) fn get(&self, key: &str, now: Instant) -> Option<Value> {
        let mut entries = self.0.lock();
        entries.retain(|entry| entry.until > now);
        let mut answer = entries.iter().find(|entry| entry.key == key)?.answer.clone();
        drop(entries);
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("cached".to_owned(), Value::Bool(true));
        }
        Some(answer)
    }

    /// Keeps an answer for so long.
    pub(crate) fn put(&self, key: String, answer: &Value, now: Instant, ttl: Duration) {
        let mut entries = self.0.lock();
        entries.retain(|entry| entry.until > now && entry.key != key);
        if ttl.is_zero() {
            return;
        }
        if entries.len() >= CAPACITY {
            entries.pop_front();
        }
        entries.push_back(CacheEntry { key, until: now + ttl, answer: answer.clone() });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TTL: Duration = Duration::from_secs(900);

    #[test]
    fn an_answer_is_given_again_until_its_time_is_over() {
        let cache = Cache::default();
        let now = Instant::now();
        cache.put("a".to_owned(), &json!({"x": 1}), now, TTL);
        assert_eq!(cache.get("a", now + TTL / 2), Some(json!({"x": 1, "cached": true})));
        assert_eq!(cache.get("b", now), None);
        cache.put("a".to_owned(), &json!({"x": 2}), now + TTL / 2, TTL);
        assert_eq!(cache.get("a", now + TTL), Some(json!({"x": 2, "cached": true})));
        assert_eq!(cache.get("a", now + TTL * 3 / 2), None);
        cache.put("c".to_owned(), &json!({}), now, Duration::ZERO);
        assert_eq!(cache.get("c", now), None);
    }

    #[test]
    fn the_oldest_of_a_hundred_goes() {
        let cache = Cache::default();
        let now = Instant::now();
        for at in 0..=CAPACITY {
            cache.put(at.to_string(), &json!({}), now, TTL);
        }
        assert_eq!(cache.get("0", now), None);
        assert!(cache.get("1", now).is_some() && cache.get("100", now).is_some());
    }
}
