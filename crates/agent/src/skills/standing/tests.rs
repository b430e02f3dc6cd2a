use std::collections::HashSet;

use serde_json::{Value, json};

use super::*;
use crate::requirements::{Strictness, platform};
use crate::skills::testing::skill;

/// Environment of a test: `bin:x`, `env:x`, `config:x`, and the platforms of nodes.
struct Place(HashSet<&'static str>);

impl RequirementEnv for Place {
    fn has_bin(&self, name: &str) -> bool {
        self.0.contains(format!("bin:{name}").as_str())
    }
    fn has_env(&self, name: &str) -> bool {
        self.0.contains(format!("env:{name}").as_str())
    }
    fn has_config(&self, path: &str) -> bool {
        self.0.contains(format!("config:{path}").as_str())
    }
    fn is_platform(&self, name: &str) -> bool {
        name == "linux" || self.0.contains(format!("node:{name}").as_str())
    }
}

/// A skill that needs this, in the form of `metadata`.
fn needing(needs: &Value) -> Skill {
    let text = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap_or_default() };
    let requires = &needs["requires"];
    Skill {
        source: if needs["bundled"] == true { SkillSource::Bundled } else { SkillSource::Managed },
        key: "k".to_owned(),
        primary_env: needs["primaryEnv"].as_str().map(str::to_owned),
        strictness: Strictness::of_always(needs["always"].as_bool()),
        requirements: Requirements {
            bins: text(&requires["bins"]),
            any_bins: text(&requires["anyBins"]),
            env: text(&requires["env"]),
            config: text(&requires["config"]),
            os: text(&needs["os"]),
        },
        ..skill("demo")
    }
}

#[test]
fn the_first_rule_that_fails_keeps_a_skill_out() {
    let rows: &[(Value, Value, &[&'static str], bool)] = &[
        (json!({}), json!({}), &[], true),
        // 1. Switched off, by key or by name; the key counts first.
        (json!({}), json!({"entries": {"k": {"enabled": false}}}), &[], false),
        (json!({}), json!({"entries": {"demo": {"enabled": false}}}), &[], false),
        (json!({}), json!({"entries": {"k": {"enabled": true}, "demo": {"enabled": false}}}), &[], true),
        (json!({"always": true}), json!({"entries": {"k": {"enabled": false}}}), &[], false),
        // 2. The allowlist is for those that come with the product.
        (json!({"bundled": true}), json!({"allowBundled": ["missing"]}), &[], false),
        (json!({"bundled": true}), json!({"allowBundled": ["k"]}), &[], true),
        (json!({"bundled": true}), json!({"allowBundled": ["demo"]}), &[], true),
        (json!({"bundled": true}), json!({"allowBundled": []}), &[], true),
        (json!({"bundled": true}), json!({"allowBundled": [" "]}), &[], true),
        (json!({}), json!({"allowBundled": ["missing"]}), &[], true),
        // 3. The platform, of this host or of a node.
        (json!({"os": ["linux"]}), json!({}), &[], true),
        (json!({"os": ["win32"]}), json!({}), &[], false),
        (json!({"os": ["darwin"]}), json!({}), &["node:darwin"], true),
        (json!({"os": ["win32"], "always": true}), json!({}), &[], false),
        // 4. Always.
        (
            json!({"always": true, "requires": {"bins": ["fakebin"], "env": ["X"], "config": ["c"]}}),
            json!({}),
            &[],
            true,
        ),
        // 5. Programs.
        (json!({"requires": {"bins": ["fakebin"]}}), json!({}), &[], false),
        (json!({"requires": {"bins": ["fakebin"]}}), json!({}), &["bin:fakebin"], true),
        (json!({"requires": {"bins": ["fakebin", "other"]}}), json!({}), &["bin:fakebin"], false),
        (json!({"requires": {"anyBins": ["fakebin", "other"]}}), json!({}), &["bin:other"], true),
        (json!({"requires": {"anyBins": ["fakebin", "other"]}}), json!({}), &[], false),
        // 6. Variables.
        (json!({"requires": {"env": ["X"]}}), json!({}), &[], false),
        (json!({"requires": {"env": ["X"]}}), json!({}), &["env:X"], true),
        (json!({"requires": {"env": ["X"]}}), json!({"entries": {"k": {"env": {"X": "v"}}}}), &[], true),
        (json!({"requires": {"env": ["X"]}}), json!({"entries": {"k": {"env": {"X": ""}}}}), &[], false),
        (
            json!({"requires": {"env": ["X"]}, "primaryEnv": "X"}),
            json!({"entries": {"k": {"apiKey": "v"}}}),
            &[],
            true,
        ),
        (
            json!({"requires": {"env": ["X"]}, "primaryEnv": "X"}),
            json!({"entries": {"k": {"apiKey": ""}}}),
            &[],
            false,
        ),
        (
            json!({"requires": {"env": ["X"]}, "primaryEnv": "Y"}),
            json!({"entries": {"k": {"apiKey": "v"}}}),
            &[],
            false,
        ),
        // 7. The configuration.
        (json!({"requires": {"config": ["browser.enabled"]}}), json!({}), &["config:browser.enabled"], true),
        (json!({"requires": {"config": ["browser.enabled"]}}), json!({}), &[], false),
    ];
    for (needs, config, there, expect) in rows {
        let config: Skills = serde_json::from_value(config.clone()).unwrap();
        let place = Place(there.iter().copied().collect());
        let standing = Standing::of(&needing(needs), &config, &place);
        assert_eq!(standing.is_eligible(), *expect, "{needs} {there:?} {standing:?}");
    }
}

#[test]
fn what_is_missing_is_told() {
    let needs = json!({"os": ["plan9"], "requires": {"bins": ["a", "b"], "env": ["X"], "config": ["c.d"]}});
    let standing = Standing::of(&needing(&needs), &Skills::default(), &Place(HashSet::from(["bin:a"])));
    let list = |name: &str| vec![name.to_owned()];
    let expect = Requirements {
        bins: list("b"),
        any_bins: Vec::new(),
        env: list("X"),
        config: list("c.d"),
        os: list("plan9"),
    };
    assert_eq!(standing, Standing { is_disabled: false, is_blocked: false, missing: expect });
    assert!(!platform().is_empty());
}
