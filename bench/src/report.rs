//! The document: text written by people, with sections that the program fills from the record.
//!
//! A section is the text between `<!-- bench:cat -->` and `<!-- /bench:cat -->`. There is one for each
//! family, one for the machines, and one for a summary; everything else is left alone.

use std::path::Path;

use anyhow::Context;

use crate::machine::{Run, committed};
use crate::record::{Effort, FamilyResult, Record};
use crate::row::{Row, TargetStatus};

const RECORD: &str = "docs/benchmarks.json";
const DOCUMENT: &str = "docs/benchmarks.md";

/// The charts' folder, relative to the document and to the repository.
const CHARTS: &str = "benchmarks";
const CHARTS_FOLDER: &str = "docs/benchmarks";

/// The records of the work tree and of the last commit.
pub(crate) fn load() -> anyhow::Result<(Record, Record)> {
    let old = committed(Path::new(RECORD));
    let old = old.map_or(Ok(Record::default()), |text| Record::parse(&text)).context(RECORD)?;
    let now = match std::fs::read_to_string(RECORD) {
        Ok(text) => Record::parse(&text).context(RECORD)?,
        Err(_) => old.clone(),
    };
    Ok((now, old))
}

/// Writes the record, the charts and the sections of the document.
pub(crate) fn save(record: &Record, families: &[&str]) -> anyhow::Result<()> {
    let document = std::fs::read_to_string(DOCUMENT).context(DOCUMENT)?;
    let document = render(&document, record, families)?;
    std::fs::create_dir_all(CHARTS_FOLDER)?;
    for chart in record.families.values().flat_map(|result| &result.charts) {
        std::fs::write(format!("{CHARTS_FOLDER}/{}.svg", chart.name), chart.svg())?;
    }
    std::fs::write(RECORD, record.text()?)?;
    Ok(std::fs::write(DOCUMENT, document)?)
}

/// The document with every section filled.
pub(crate) fn render(document: &str, record: &Record, families: &[&str]) -> anyhow::Result<String> {
    let mut document = fill(document, "machines", &machines(record))?;
    document = fill(&document, "summary", &summary(record, families))?;
    for family in families {
        let text = record.families.get(*family).map_or("Not measured yet.\n".into(), section);
        document = fill(&document, family, &text)?;
    }
    Ok(document)
}

/// Replaces the text of a section.
fn fill(document: &str, section: &str, text: &str) -> anyhow::Result<String> {
    let (open, close) =
        (format!("<!-- bench:{section} -->\n"), format!("<!-- /bench:{section} -->"));
    let parts = document.split_once(&open).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&close)?;
        Some((before, after))
    });
    let (before, after) = parts
        .with_context(|| format!("{DOCUMENT} has no section between {open:?} and {close:?}"))?;
    Ok(format!("{before}{open}\n{text}\n{close}{after}"))
}

/// The section of a family: its table, details of the run, and its charts.
pub(crate) fn section(result: &FamilyResult) -> String {
    let mut out = String::new();
    if let Some(failure) = &result.failure {
        let Run { date, commit, .. } = &failure.run;
        // Line breaks in an error would break the document.
        let why = failure.why.split_whitespace().collect::<Vec<_>>().join(" ");
        out.push_str(&format!("**Failed** on {date}, commit {commit}: {why}\n\n"));
        if result.rows.is_empty() {
            return out.trim_end().to_owned() + "\n";
        }
        out.push_str("The table shows an earlier run.\n\n");
    }
    out.push_str(Row::HEADER);
    out.push('\n');
    for row in &result.rows {
        out.push_str(&format!("{row}\n"));
    }
    let Run { date, commit, long, .. } = &result.run;
    let form = if *long { "long form" } else { "short form" };
    out.push_str(&format!("\n{date}, commit {commit}, {form}"));
    if let Some(Effort { seconds, load_before, load_after }) = result.effort {
        let load = format!("load {load_before:.2} before, {load_after:.2} after");
        out.push_str(&format!(", {seconds:.0} s; {load}"));
    }
    out.push_str(".\n");
    for chart in &result.charts {
        out.push_str(&format!("\n![{}]({CHARTS}/{}.svg)\n", chart.title, chart.name));
    }
    out
}

/// The machines on which the families were measured.
fn machines(record: &Record) -> String {
    let mut machines: Vec<(String, Vec<&str>)> = Vec::new();
    for (family, result) in record.families.iter().filter(|(_, result)| !result.rows.is_empty()) {
        let Run { machine, peers, .. } = &result.run;
        let machine_text = format!("{machine}. {peers}.");
        match machines.iter_mut().find(|(known, _)| *known == machine_text) {
            Some((_, families)) => families.push(family),
            None => machines.push((machine_text, vec![family])),
        }
    }
    match machines.as_slice() {
        [(only, _)] => format!("{only}\n"),
        all => all
            .iter()
            .map(|(machine_text, families)| format!("- {}: {machine_text}\n", families.join(", ")))
            .collect(),
    }
}

/// How many targets are met, and which rows need attention.
fn summary(record: &Record, families: &[&str]) -> String {
    let result = families.iter().filter_map(|family| Some((family, record.families.get(*family)?)));
    let rows = result.clone().flat_map(|(_, result)| &result.rows);
    let count = |status| rows.clone().filter(|row| row.status() == status).count();
    let (met, missed) = (count(TargetStatus::Met), count(TargetStatus::Missed));
    let not_measured = count(TargetStatus::NotMeasured);
    let mut out = format!(
        "{met} of {} targets are met, {missed} are missed, {not_measured} are not measured.\n",
        met + missed + not_measured
    );
    let named = |row: &Row| match &row.peer {
        Some((peer, _)) => format!("{} ({peer})", row.what),
        None => row.what.clone(),
    };
    let mut list = |head: &str, of: &dyn Fn(&Row) -> bool| {
        let found: Vec<_> = rows.clone().filter(|row| of(row)).map(named).collect();
        if !found.is_empty() {
            out.push_str(&format!("\n{head}:\n\n- {}\n", found.join("\n- ")));
        }
    };
    list("Missed", &|row| row.status() == TargetStatus::Missed);
    list("Not measured", &|row| row.status() == TargetStatus::NotMeasured);
    list("Worse than in the previous run", &Row::is_worse);
    let failed: Vec<_> = result
        .filter(|(_, result)| result.failure.is_some())
        .map(|(family, _)| family.to_string())
        .collect();
    if !failed.is_empty() {
        out.push_str(&format!("\nFailed: {}.\n", failed.join(", ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Chart};
    use crate::row::Target;

    const EMPTY: &str = "Intro.\n<!-- bench:machines -->\n<!-- /bench:machines -->\n\
        <!-- bench:summary -->\n<!-- /bench:summary -->\nProse.\n<!-- bench:cat -->\nold\n\
        <!-- /bench:cat -->\nMore prose.\n<!-- bench:idle -->\n<!-- /bench:idle -->\nEnd.\n";

    fn run(date: &str) -> Run {
        let (machine, peers) = ("2 cores".into(), "tmux 3.3a".into());
        Run { date: date.into(), commit: "abc1234".into(), machine, peers, long: false }
    }

    fn result(ratio: f64) -> FamilyResult {
        let row = Row::ratio("cat", ratio, ("tmux", 1.0), "MB/s", Target::AtLeast(1.8));
        let chart = Chart::bars("cat", "Rates", Axis::linear("MB/s"), Vec::new());
        let effort = Some(Effort { seconds: 12.0, load_before: 0.5, load_after: 2.0 });
        let (run, charts) = (run("2026-11-15"), vec![chart]);
        FamilyResult { run, effort, rows: vec![row], charts, ..FamilyResult::default() }
    }

    #[test]
    fn sections_are_filled_and_other_text_stays() {
        let mut record = Record::default();
        record.keep("cat", result(2.0), &Record::default());
        let once = render(EMPTY, &record, &["cat", "idle"]).unwrap();
        assert_eq!(
            once,
            "Intro.\n<!-- bench:machines -->\n\n2 cores. tmux 3.3a.\n\n<!-- /bench:machines -->\n\
             <!-- bench:summary -->\n\n1 of 1 targets are met, 0 are missed, 0 are not measured.\n\n\
             <!-- /bench:summary -->\nProse.\n<!-- bench:cat -->\n\n\
             | measurement | patterm | compared with | its value | ratio or value | target | | before | change |\n\
             |---|---:|---|---:|---:|---:|---|---:|---|\n\
             | cat | 2.00 MB/s | tmux | 1.00 MB/s | 2.00 × | ≥ 1.8 × | met |  |  |\n\n\
             2026-11-15, commit abc1234, short form, 12 s; load 0.50 before, 2.00 after.\n\n\
             ![Rates](benchmarks/cat.svg)\n\n<!-- /bench:cat -->\nMore prose.\n\
             <!-- bench:idle -->\n\nNot measured yet.\n\n<!-- /bench:idle -->\nEnd.\n"
        );
        assert_eq!(render(&once, &record, &["cat", "idle"]).unwrap(), once);
    }

    #[test]
    fn a_failure_is_shown_above_the_earlier_results() {
        let mut record = Record::default();
        record.keep("cat", result(1.0), &Record::default());
        record.fail("cat", run("2026-11-16"), "no echo:\n| a screen |".into());
        record.fail("idle", run("2026-11-16"), "no".into());
        let text = render(EMPTY, &record, &["cat", "idle"]).unwrap();
        let cat = "**Failed** on 2026-11-16, commit abc1234: no echo: | a screen |\n\n\
            The table shows an earlier run.\n\n| measurement |";
        assert!(text.contains(cat), "{text}");
        assert!(
            text.contains("\n**Failed** on 2026-11-16, commit abc1234: no\n\n<!-- /bench:idle")
        );
        assert!(text.contains("Missed:\n\n- cat (tmux)\n\nFailed: cat, idle.\n"), "{text}");
    }

    #[test]
    fn families_measured_on_other_machines_are_listed_separately() {
        let mut record = Record::default();
        record.keep("cat", result(2.0), &Record::default());
        let mut other = result(2.0);
        other.run.machine = "64 cores".into();
        record.keep("idle", other, &Record::default());
        let text = machines(&record);
        assert_eq!(text, "- cat: 2 cores. tmux 3.3a.\n- idle: 64 cores. tmux 3.3a.\n");
    }

    #[test]
    fn a_document_without_a_section_is_refused() {
        let error = render(EMPTY, &Record::default(), &["cat", "soak"]).unwrap_err();
        assert!(error.to_string().contains("bench:soak"), "{error}");
    }

    #[test]
    fn the_document_matches_the_record() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(top.join(path)).unwrap();
        let (document, record) = (read(DOCUMENT), Record::parse(&read(RECORD)).unwrap());
        let families: Vec<&str> = crate::FAMILIES.iter().map(|(name, _)| *name).collect();
        let hint = "`scripts/bench --render` writes it";
        assert_eq!(render(&document, &record, &families).unwrap(), document, "{hint}");
        for chart in record.families.values().flat_map(|result| &result.charts) {
            let file = format!("{CHARTS_FOLDER}/{}.svg", chart.name);
            assert_eq!(read(&file), chart.svg(), "{file}: {hint}");
        }
    }
}
