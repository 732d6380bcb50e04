//! Which tools of a shared server each agent sees.

use std::collections::BTreeMap;

use patterm_gateway::{ToolPatterns, matches_pattern};

/// The entry of `agents` that applies to agents without an entry of their own.
const OTHERS: &str = "others";

/// Which tools of a shared server each agent sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// The tools that any caller sees.
    pub all: ToolPatterns,
    /// Patterns of the tools that an agent sees, by the agent's name or preset.
    pub agents: BTreeMap<String, Vec<String>>,
}

impl ToolFilter {
    /// Whether an agent with these names sees a tool. If neither the agent nor `others` has an entry,
    /// the entry of its nearest ancestor applies, so that an agent cannot evade its filter by starting
    /// another agent.
    pub fn shows_to(&self, tool: &str, agent: &[String], ancestors: &[Vec<String>]) -> bool {
        let named = |names: &[String]| names.iter().find_map(|name| self.agents.get(name));
        let patterns = named(agent)
            .or_else(|| self.agents.get(OTHERS))
            .or_else(|| ancestors.iter().find_map(|names| named(names)));
        let is_allowed = patterns
            .is_none_or(|patterns| patterns.iter().any(|pattern| matches_pattern(pattern, tool)));
        is_allowed && self.all.shows(tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_sees_the_tools_of_its_entry() {
        let filter = ToolFilter {
            all: ToolPatterns {
                only: Some(vec!["read_*".into(), "write_*".into()]),
                without: vec!["write_secret".into()],
            },
            agents: [("reviewer".to_owned(), vec!["read_*".to_owned()]), (OTHERS.into(), vec![])]
                .into(),
        };
        assert!(filter.all.shows("write_file") && !filter.all.shows("write_secret"));
        let names = |name: &str| vec![name.to_owned(), "claude".to_owned()];
        assert!(filter.shows_to("read_file", &names("reviewer"), &[]));
        assert!(!filter.shows_to("write_file", &names("reviewer"), &[]));
        assert!(!filter.shows_to("read_file", &names("builder"), &[]));
        assert!(!filter.shows_to("read_file", &names("builder"), &[names("reviewer")]));
        assert!(ToolFilter::default().shows_to("anything", &names("x"), &[]));
    }

    #[test]
    fn an_agent_without_an_entry_sees_no_more_than_its_nearest_ancestor() {
        let names = |name: &str| vec![name.to_owned()];
        let agents = [("intern", "read"), ("lead", "write")];
        let agents = agents.map(|(name, tool)| (name.to_owned(), vec![tool.to_owned()])).into();
        let filter = ToolFilter { all: ToolPatterns::default(), agents };
        assert!(filter.shows_to("write", &names("helper"), &[]), "no entry applies");
        let above = [names("helper"), names("intern"), names("lead")];
        assert!(filter.shows_to("read", &names("helper-2"), &above));
        assert!(!filter.shows_to("write", &names("helper-2"), &above));
        assert!(filter.shows_to("write", &names("lead"), &above), "it has its own entry");
    }
}
