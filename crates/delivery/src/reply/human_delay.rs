//! Pauses between blocks, as people make them (spec `streaming.md` §4). Only between blocks: the
//! first block has none before it, and neither have messages of tools or the end of the answer.

use std::time::Duration;

use openclaw_config::settings::{HumanDelay, HumanDelayMode};

/// Range from which a pause's length is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    min: Duration,
    max: Duration,
}

impl Pause {
    const MIN_MS: u64 = 800;
    const MAX_MS: u64 = 2500;

    /// Returns the pause of an agent, its own settings over those that all agents share; `None`
    /// without pauses.
    pub fn of(agent: HumanDelay, shared: HumanDelay) -> Option<Self> {
        let HumanDelay { mode, min_ms, max_ms } = agent.over(shared);
        let (min, max) = match mode.unwrap_or_default() {
            HumanDelayMode::Off => return None,
            HumanDelayMode::Natural => (Self::MIN_MS, Self::MAX_MS),
            HumanDelayMode::Custom => (min_ms.unwrap_or(Self::MIN_MS), max_ms.unwrap_or(Self::MAX_MS)),
        };
        Some(Self { min: Duration::from_millis(min), max: Duration::from_millis(max.max(min)) })
    }

    /// Draws a pause; `share` is drawn evenly from 0 to 1.
    pub fn draw(self, share: f64) -> Duration {
        self.min + (self.max - self.min).mul_f64(share.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_as_it_is_set() {
        use HumanDelayMode::{Custom, Natural, Off};
        let set = |mode, min_ms, max_ms| HumanDelay { mode, min_ms, max_ms };
        let none = HumanDelay::default();
        let rows = [
            (none, none, None),
            (none, set(Some(Natural), Some(1), Some(2)), Some((800, 1650, 2500))),
            (set(Some(Off), None, None), set(Some(Natural), None, None), None),
            (set(Some(Custom), Some(100), Some(300)), none, Some((100, 200, 300))),
            (set(Some(Custom), None, None), none, Some((800, 1650, 2500))),
            (set(None, Some(1000), None), set(Some(Custom), Some(5), Some(2000)), Some((1000, 1500, 2000))),
            (set(Some(Custom), Some(500), Some(100)), none, Some((500, 500, 500))),
        ];
        for (agent, shared, expect) in rows {
            let pause = Pause::of(agent, shared);
            let drawn = pause.map(|pause| {
                let ms = |share| pause.draw(share).as_millis();
                (ms(0.0), ms(0.5), ms(1.0))
            });
            assert_eq!(drawn, expect, "{agent:?} {shared:?}");
        }
    }
}
