//! The document: text written by people, with places that the program fills from the record.
//!
//! A place is what stands between `<!-- bench:cat -->` and `<!-- /bench:cat -->`. There is one for
//! each family, one for the machines, and one for a summary; all else is left alone.

use std::path::Path;

use anyhow::Context;

use crate::machine::{Run, committed};
use crate::record::{Effort, Record, Taken};
use crate::row::{Row, Verdict};

const RECORD: &str = "docs/benchmarks.json";
const DOCUMENT: &str = "docs/benchmarks.md";

/// Where the charts are, as the document says it, and as this program does.
const CHARTS: &str = "benchmarks";
const CHARTS_FOLDER: &str = "docs/benchmarks";

/// The record of the work tree, and the one of the last commit.
pub(crate) fn load() -> anyhow::Result<(Record, Record)> {
    let old = committed(Path::new(RECORD));
    let old = old.map_or(Ok(Record::default()), |text| Record::parse(&text)).context(RECORD)?;
    let now = match std::fs::read_to_string(RECORD) {
        Ok(text) => Record::parse(&text).context(RECORD)?,
        Err(_) => old.clone(),
    };
    Ok((now, old))
}

/// Writes the record, the charts and the places of the document.
pub(crate) fn save(record: &Record, families: &[&str]) -> anyhow::Result<()> {
    let document = std::fs::read_to_string(DOCUMENT).context(DOCUMENT)?;
    let document = render(&document, record, families)?;
    std::fs::create_dir_all(CHARTS_FOLDER)?;
    for chart in record.families.values().flat_map(|taken| &taken.charts) {
        std::fs::write(format!("{CHARTS_FOLDER}/{}.svg", chart.name), chart.svg())?;
    }
    std::fs::write(RECORD, record.text()?)?;
    Ok(std::fs::write(DOCUMENT, document)?)
}

/// The document with every place filled.
pub(crate) fn render(document: &str, record: &Record, families: &[&str]) -> anyhow::Result<String> {
    let mut document = fill(document, "machines", &machines(record))?;
    document = fill(&document, "summary", &summary(record, families))?;
    for family in families {
        let text = record.families.get(*family).map_or("Not measured yet.\n".into(), section);
        document = fill(&document, family, &text)?;
    }
    Ok(document)
}

/// Puts a text into its place.
fn fill(document: &str, place: &str, text: &str) -> anyhow::Result<String> {
    let (open, close) = (format!("<!-- bench:{place} -->\n"), format!("<!-- /bench:{place} -->"));
    let parts = document.split_once(&open).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&close)?;
        Some((before, after))
    });
    let (before, after) =
        parts.with_context(|| format!("{DOCUMENT} has no place between {open:?} and {close:?}"))?;
    Ok(format!("{before}{open}\n{text}\n{close}{after}"))
}

/// The table of a family with its charts, and what is to be known of the run.
pub(crate) fn section(taken: &Taken) -> String {
    let mut out = String::new();
    if let Some(failure) = &taken.failure {
        let Run { date, commit, .. } = &failure.run;
        // A table and what is below it would not survive the lines of an error.
        let why = failure.why.split_whitespace().collect::<Vec<_>>().join(" ");
        out.push_str(&format!("**Failed** on {date}, commit {commit}: {why}\n\n"));
        if taken.rows.is_empty() {
            return out.trim_end().to_owned() + "\n";
        }
        out.push_str("What follows is of an earlier run.\n\n");
    }
    out.push_str(Row::HEADER);
    out.push('\n');
    for row in &taken.rows {
        out.push_str(&format!("{row}\n"));
    }
    let Run { date, commit, long, .. } = &taken.run;
    let form = if *long { "long form" } else { "short form" };
    out.push_str(&format!("\n{date}, commit {commit}, {form}"));
    if let Some(Effort { seconds, load_before, load_after }) = taken.effort {
        let load = format!("load {load_before:.2} before, {load_after:.2} after");
        out.push_str(&format!(", {seconds:.0} s; {load}"));
    }
    out.push_str(".\n");
    for chart in &taken.charts {
        out.push_str(&format!("\n![{}]({CHARTS}/{}.svg)\n", chart.title, chart.name));
    }
    out
}

/// Where the families were run, most of them in the same place.
fn machines(record: &Record) -> String {
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for (family, taken) in record.families.iter().filter(|(_, taken)| !taken.rows.is_empty()) {
        let Run { machine, peers, .. } = &taken.run;
        let place = format!("{machine}. {peers}.");
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, families)) => families.push(family),
            None => places.push((place, vec![family])),
        }
    }
    match places.as_slice() {
        [(only, _)] => format!("{only}\n"),
        all => all
            .iter()
            .map(|(place, families)| format!("- {}: {place}\n", families.join(", ")))
            .collect(),
    }
}

/// How many bars are met, and which rows want a look.
fn summary(record: &Record, families: &[&str]) -> String {
    let taken = families.iter().filter_map(|family| Some((family, record.families.get(*family)?)));
    let rows = taken.clone().flat_map(|(_, taken)| &taken.rows);
    let count = |verdict| rows.clone().filter(|row| row.verdict() == verdict).count();
    let (met, missed) = (count(Verdict::Met), count(Verdict::Missed));
    let not_measured = count(Verdict::NotMeasured);
    let mut out = format!(
        "Of {} bars {met} are met, {missed} are missed, {not_measured} are not measured.\n",
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
    list("Missed", &|row| row.verdict() == Verdict::Missed);
    list("Not measured", &|row| row.verdict() == Verdict::NotMeasured);
    list("Worse than in the run before", &Row::is_worse);
    let failed: Vec<_> = taken
        .filter(|(_, taken)| taken.failure.is_some())
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
    use crate::row::Bar;

    const EMPTY: &str = "Intro.\n<!-- bench:machines -->\n<!-- /bench:machines -->\n\
        <!-- bench:summary -->\n<!-- /bench:summary -->\nProse.\n<!-- bench:cat -->\nold\n\
        <!-- /bench:cat -->\nMore prose.\n<!-- bench:idle -->\n<!-- /bench:idle -->\nEnd.\n";

    fn run(date: &str) -> Run {
        let (machine, peers) = ("2 cores".into(), "tmux 3.3a".into());
        Run { date: date.into(), commit: "abc1234".into(), machine, peers, long: false }
    }

    fn taken(ratio: f64) -> Taken {
        let row = Row::ratio("cat", ratio, ("tmux", 1.0), "MB/s", Bar::AtLeast(1.8));
        let chart = Chart::bars("cat", "Rates", Axis::linear("MB/s"), Vec::new());
        let effort = Some(Effort { seconds: 12.0, load_before: 0.5, load_after: 2.0 });
        let (run, charts) = (run("2026-11-15"), vec![chart]);
        Taken { run, effort, rows: vec![row], charts, ..Taken::default() }
    }

    #[test]
    fn the_places_are_filled_and_what_people_wrote_stays() {
        let mut record = Record::default();
        record.keep("cat", taken(2.0), &Record::default());
        let once = render(EMPTY, &record, &["cat", "idle"]).unwrap();
        assert_eq!(
            once,
            "Intro.\n<!-- bench:machines -->\n\n2 cores. tmux 3.3a.\n\n<!-- /bench:machines -->\n\
             <!-- bench:summary -->\n\nOf 1 bars 1 are met, 0 are missed, 0 are not measured.\n\n\
             <!-- /bench:summary -->\nProse.\n<!-- bench:cat -->\n\n\
             | what | patterm | peer | its | ratio or value | bar | | before | change |\n\
             |---|---:|---|---:|---:|---:|---|---:|---|\n\
             | cat | 2.00 MB/s | tmux | 1.00 MB/s | 2.00 × | ≥ 1.8 × | met |  |  |\n\n\
             2026-11-15, commit abc1234, short form, 12 s; load 0.50 before, 2.00 after.\n\n\
             ![Rates](benchmarks/cat.svg)\n\n<!-- /bench:cat -->\nMore prose.\n\
             <!-- bench:idle -->\n\nNot measured yet.\n\n<!-- /bench:idle -->\nEnd.\n"
        );
        assert_eq!(render(&once, &record, &["cat", "idle"]).unwrap(), once);
    }

    #[test]
    fn a_failure_stands_in_its_place_above_what_was_before() {
        let mut record = Record::default();
        record.keep("cat", taken(1.0), &Record::default());
        record.fail("cat", run("2026-11-16"), "no echo:\n| a screen |".into());
        record.fail("idle", run("2026-11-16"), "no".into());
        let text = render(EMPTY, &record, &["cat", "idle"]).unwrap();
        let cat = "**Failed** on 2026-11-16, commit abc1234: no echo: | a screen |\n\n\
            What follows is of an earlier run.\n\n| what |";
        assert!(text.contains(cat), "{text}");
        assert!(
            text.contains("\n**Failed** on 2026-11-16, commit abc1234: no\n\n<!-- /bench:idle")
        );
        assert!(text.contains("Missed:\n\n- cat (tmux)\n\nFailed: cat, idle.\n"), "{text}");
    }

    #[test]
    fn families_that_were_run_elsewhere_say_where() {
        let mut record = Record::default();
        record.keep("cat", taken(2.0), &Record::default());
        let mut other = taken(2.0);
        other.run.machine = "64 cores".into();
        record.keep("idle", other, &Record::default());
        let text = machines(&record);
        assert_eq!(text, "- cat: 2 cores. tmux 3.3a.\n- idle: 64 cores. tmux 3.3a.\n");
    }

    #[test]
    fn a_document_without_a_place_is_refused() {
        let error = render(EMPTY, &Record::default(), &["cat", "soak"]).unwrap_err();
        assert!(error.to_string().contains("bench:soak"), "{error}");
    }

    #[test]
    fn the_document_is_what_the_record_says() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(top.join(path)).unwrap();
        let (document, record) = (read(DOCUMENT), Record::parse(&read(RECORD)).unwrap());
        let families: Vec<&str> = crate::FAMILIES.iter().map(|(name, _)| *name).collect();
        let hint = "`scripts/bench --render` writes it";
        assert_eq!(render(&document, &record, &families).unwrap(), document, "{hint}");
        for chart in record.families.values().flat_map(|taken| &taken.charts) {
            let file = format!("{CHARTS_FOLDER}/{}.svg", chart.name);
            assert_eq!(read(&file), chart.svg(), "{file}: {hint}");
        }
    }
}
