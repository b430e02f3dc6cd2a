//! Section of the system prompt about skills (spec `agent-runtime.md` §6.4).

use openclaw_protocol::text_length::utf16_len;

use super::skill::{ForModel, Skill};
use crate::prompt::{SkillReport, SkillsReport};

/// Text before the list of skills.
const INTRODUCTION: &str = "Skills are instructions for special tasks. Their files are not in this prompt.\n\
                            When a task matches a description, load the file at its location with the read tool.\n\
                            Relative paths in such a file start at the directory it lies in; use absolute paths in tool calls.";

/// The text with its sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PromptText {
    /// Blank when no skill is for the model.
    pub(super) text: String,
    /// Sizes for the report of the prompt.
    pub(super) report: SkillsReport,
}

impl PromptText {
    /// Builds the text of these skills, in their order.
    pub(super) fn of<'s>(skills: impl Iterator<Item = &'s Skill>) -> Self {
        let mut blocks = String::new();
        let mut entries = Vec::new();
        for skill in skills.filter(|skill| skill.for_model == ForModel::Listed) {
            let block = block(skill);
            entries.push(SkillReport { name: skill.name.clone(), block_chars: utf16_len(&block) });
            blocks.push_str("\n  ");
            blocks.push_str(&block);
        }
        if entries.is_empty() {
            return Self::default();
        }
        let text = format!("{INTRODUCTION}\n<available_skills>{blocks}\n</available_skills>");
        Self { report: SkillsReport { prompt_chars: utf16_len(&text), entries }, text }
    }
}

fn block(skill: &Skill) -> String {
    let (name, description) = (escaped(&skill.name), escaped(&skill.description));
    let location = escaped(&skill.file_path.display().to_string());
    format!(
        "<skill>\n    <name>{name}</name>\n    <description>{description}</description>\n    \
         <location>{location}</location>\n  </skill>"
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::skill;
    use super::*;

    #[test]
    fn the_list_is_xml_and_hidden_skills_are_not_in_it() {
        let demo = Skill { description: "Text & more".to_owned(), ..skill("demo") };
        let hidden = Skill { for_model: ForModel::Hidden, ..skill("hidden") };
        let odd = Skill { description: "<a> \"b\" 'c'".to_owned(), ..skill("odd") };
        let made = PromptText::of([&demo, &hidden, &odd].into_iter());
        let list = made.text.strip_prefix(INTRODUCTION).unwrap();
        expect_test::expect![[r#"

            <available_skills>
              <skill>
                <name>demo</name>
                <description>Text &amp; more</description>
                <location>/w/skills/demo/SKILL.md</location>
              </skill>
              <skill>
                <name>odd</name>
                <description>&lt;a&gt; &quot;b&quot; &apos;c&apos;</description>
                <location>/w/skills/odd/SKILL.md</location>
              </skill>
            </available_skills>"#]]
        .assert_eq(list);
        assert_eq!(INTRODUCTION.lines().count(), 3);
        assert_eq!(made.report.prompt_chars, utf16_len(&made.text));
        let named: Vec<&str> = made.report.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(named, ["demo", "odd"]);
        let start = made.text.find("<skill>").unwrap();
        let end = made.text.find("</skill>").unwrap() + "</skill>".len();
        assert_eq!(made.report.entries[0].block_chars, utf16_len(&made.text[start..end]));
        assert_eq!(PromptText::of([&hidden].into_iter()), PromptText::default());
    }
}
