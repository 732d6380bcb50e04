//! The record of measurements: the last run of each family, in a JSON file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chart::{Chart, round};
use crate::machine::Run;
use crate::row::Row;

/// The last run of each family, by its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Record {
    pub(crate) families: BTreeMap<String, FamilyResult>,
}

/// The results of a family. A family that failed keeps its earlier results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FamilyResult {
    pub(crate) run: Run,
    /// `None` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<Effort>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Failure>,
    pub(crate) rows: Vec<Row>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) charts: Vec<Chart>,
}

/// How long a family took, and how busy the machine was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effort {
    pub(crate) seconds: f64,
    pub(crate) load_before: f64,
    pub(crate) load_after: f64,
}

/// A later run of a family that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) run: Run,
    pub(crate) why: String,
}

/// From this depth on, a value is written on one line: a row, a chart.
const FLAT_FROM: usize = 3;

impl Record {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(serde_json::from_str(text)?)
    }

    /// The file, with one line for each row and each chart, so that a diff shows which of them changed.
    pub(crate) fn text(&self) -> anyhow::Result<String> {
        let mut out = String::new();
        write(&mut out, &serde_json::to_value(self)?, 0);
        out.push('\n');
        Ok(out)
    }

    /// Stores the results of a family, with the values of the committed run.
    pub(crate) fn keep(&mut self, family: &str, mut result: FamilyResult, committed: &Self) {
        let before = committed.families.get(family).map_or(&[][..], |result| &result.rows);
        for row in &mut result.rows {
            row.value = row.value.map(round);
            row.before = before.iter().find(|old| row.is_same(old)).and_then(|old| old.value);
        }
        result.charts.iter_mut().for_each(Chart::round);
        self.families.insert(family.to_owned(), result);
    }

    /// Records that a family failed.
    pub(crate) fn fail(&mut self, family: &str, run: Run, why: String) {
        self.families.entry(family.to_owned()).or_default().failure = Some(Failure { run, why });
    }
}

/// Writes a value with its outer levels on separate lines.
fn write(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth + 1);
    let (open, close, items): (_, _, Vec<(String, &Value)>) = match value {
        Value::Object(map) if depth < FLAT_FROM => {
            ("{", "}", map.iter().map(|(key, value)| (format!("{key:?}: "), value)).collect())
        }
        Value::Array(list) if depth < FLAT_FROM && list.iter().all(Value::is_object) => {
            ("[", "]", list.iter().map(|value| (String::new(), value)).collect())
        }
        flat => return out.push_str(&flat.to_string()),
    };
    out.push_str(open);
    for (at, (key, value)) in items.into_iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.push_str(&indent);
        out.push_str(&key);
        write(out, value, depth + 1);
    }
    out.push_str(&format!("\n{}{close}", &indent[2..]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Series};
    use crate::row::Target;

    fn result(rate: f64) -> FamilyResult {
        let line = Series { name: "a".into(), points: vec![(1.0, rate)] };
        let axes = (Axis::linear("s"), Axis::log("MB/s"));
        FamilyResult {
            effort: Some(Effort { seconds: 9.5, load_before: 0.1, load_after: 1.25 }),
            rows: vec![Row::ratio("cat", rate, ("tmux", 30.0), "MB/s", Target::AtLeast(1.8))],
            charts: vec![Chart::lines("cat", "Rates", axes, vec![line])],
            ..FamilyResult::default()
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let mut record = Record::default();
        record.keep("cat", result(70.0), &Record::default());
        record.fail("idle", Run::default(), "no \"tmux\"".into());
        let text = record.text().unwrap();
        assert_eq!(Record::parse(&text).unwrap(), record);
        assert!(text.lines().any(|line| line.starts_with("      {\"bar\":{\"AtLeast\":1.8},")));
        assert!(text.lines().any(|line| line == "      \"load_after\": 1.25,"), "{text}");
    }

    #[test]
    fn a_family_is_compared_with_the_committed_run_and_survives_its_failure() {
        let mut committed = Record::default();
        committed.keep("cat", result(60.0), &Record::default());
        let mut record = committed.clone();
        record.keep("cat", result(70.0), &committed);
        // Run twice, it is still the committed run that it is compared with.
        record.keep("cat", result(80.0), &committed);
        let row = &record.families["cat"].rows[0];
        assert_eq!((row.value, row.before), (Some(2.667), Some(2.0)));
        record.fail("cat", Run::default(), "gone".into());
        let cat = &record.families["cat"];
        assert_eq!((cat.rows.len(), cat.failure.as_ref().unwrap().why.as_str()), (1, "gone"));
    }

    #[test]
    fn rows_with_different_peers_or_texts_are_different() {
        let row = |what: &str, peer| Row::ratio(what, 1.0, (peer, 1.0), "s", Target::Less);
        assert!(row("a", "tmux").is_same(&row("a", "tmux")));
        assert!(!row("a", "tmux").is_same(&row("a", "screen")));
        assert!(!row("a", "tmux").is_same(&row("b", "tmux")));
    }
}
