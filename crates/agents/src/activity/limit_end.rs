//! When a limit ends, from the CLI's message. Every CLI has its own format, in local time.

use std::sync::LazyLock;

use chrono::{DateTime, Datelike, Days, Local, Months, NaiveDate, NaiveTime, TimeDelta, TimeZone};
use regex::{Captures, Regex};

/// `3pm`, `6:30 PM`, `18:30`, with a day before it or without one: `Nov 20, 3pm`, `Nov 17th, 2026 6:30 PM`.
static CLOCK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let day = r"(?:(?<month>[a-z]{3})[a-z]* (?<day>\d{1,2})(?:st|nd|rd|th)?(?:,? (?<year>\d{4}))?,?(?: at)? )";
    let time = r"(?<hour>\d{1,2})(?::(?<minute>\d{2}))? ?(?<half>[ap]m)?";
    Regex::new(&format!(r"(?i)^{day}?{time}$")).ok()
});

/// `45s`, `5 minutes`, `3 days 4 hours`.
static SPAN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:(?:and )?\d+ ?(?:[smhd]|sec|min|hour|day)[a-z]*,? ?)+$").ok()
});
static PART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?<count>\d+) ?(?<unit>[smhd])").ok());

/// The end of a limit from text that was printed at `printed_at`; `None` if the format is
/// unknown.
pub(crate) fn limit_end(words: &str, printed_at: DateTime<Local>) -> Option<DateTime<Local>> {
    let words = words.trim().trim_end_matches('.');
    if let Ok(exact) = DateTime::parse_from_rfc3339(words) {
        return Some(exact.with_timezone(&Local));
    }
    // claude names its time zone, which is that of the machine.
    let words = words.split(" (").next().unwrap_or(words);
    if let Some(found) = CLOCK.as_ref()?.captures(words) {
        return clock(&found, printed_at);
    }
    SPAN.as_ref()?.is_match(words).then(|| span(words, printed_at))?
}

fn clock(found: &Captures<'_>, printed_at: DateTime<Local>) -> Option<DateTime<Local>> {
    let number =
        |name: &str| found.name(name).and_then(|number| number.as_str().parse::<u32>().ok());
    let half = found.name("half").map(|half| half.as_str().to_lowercase());
    // A lone number is not a time of day.
    if half.is_none() && found.name("minute").is_none() {
        return None;
    }
    let hour = match (number("hour")?, half.as_deref()) {
        (12, Some("am")) => 0,
        (hour @ 1..=11, Some("pm")) => hour + 12,
        (hour, _) => hour,
    };
    let time = NaiveTime::from_hms_opt(hour, number("minute").unwrap_or(0), 0)?;
    let today = printed_at.date_naive();
    let local = |day: NaiveDate| Local.from_local_datetime(&day.and_time(time)).earliest();
    let Some(month) = found.name("month") else {
        let next = || local(today.checked_add_days(Days::new(1))?);
        return local(today).filter(|end| *end >= printed_at).or_else(next);
    };
    let month: chrono::Month = month.as_str().parse().ok()?;
    let year = found.name("year").and_then(|year| year.as_str().parse().ok());
    let day = NaiveDate::from_ymd_opt(
        year.unwrap_or(today.year()),
        month.number_from_month(),
        number("day")?,
    )?;
    match year {
        Some(_) => local(day),
        // Without a year, it is the next such day.
        None if day < today => local(day.checked_add_months(Months::new(12))?),
        None => local(day),
    }
}

fn span(words: &str, printed_at: DateTime<Local>) -> Option<DateTime<Local>> {
    let seconds = PART.as_ref()?.captures_iter(words).map(|part| {
        let unit = match part["unit"].to_lowercase().as_str() {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => 86_400,
        };
        part["count"].parse::<i64>().ok()?.checked_mul(unit)
    });
    let seconds = seconds.sum::<Option<i64>>()?;
    printed_at.checked_add_signed(TimeDelta::try_seconds(seconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_limit_is_parsed_from_every_clis_format() {
        let at = |text: &str| {
            let naive = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap();
            Local.from_local_datetime(&naive).earliest().unwrap()
        };
        let printed_at = at("2026-11-16 17:00:00");
        for (words, end) in [
            ("6:30 PM", Some("2026-11-16 18:30:00")),
            ("6pm (Europe/Berlin)", Some("2026-11-16 18:00:00")),
            ("3am", Some("2026-11-17 03:00:00")),
            ("12am", Some("2026-11-17 00:00:00")),
            ("12:15 pm", Some("2026-11-17 12:15:00")),
            ("18:30", Some("2026-11-16 18:30:00")),
            ("Nov 20, 3pm (UTC)", Some("2026-11-20 15:00:00")),
            ("Nov 20 at 3pm", Some("2026-11-20 15:00:00")),
            ("Nov 17th, 2026 6:30 PM", Some("2026-11-17 18:30:00")),
            ("Nov 15th, 2026 6:30 PM", Some("2026-11-15 18:30:00")),
            ("January 2, 3pm", Some("2027-01-02 15:00:00")),
            ("45s", Some("2026-11-16 17:00:45")),
            ("5 minutes", Some("2026-11-16 17:05:00")),
            ("3 days 4 hours 9 minutes", Some("2026-11-19 21:09:00")),
            ("tomorrow", None),
            ("later", None),
            ("25:00", None),
            ("5", None),
            ("", None),
        ] {
            assert_eq!(limit_end(words, printed_at), end.map(at), "{words}");
        }
        let exact = limit_end("2026-11-16T18:30:00.000Z", printed_at).unwrap();
        assert_eq!(exact.timestamp(), 1_794_853_800);
    }
}
