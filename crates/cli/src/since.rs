//! `--since`: a time, as people write it.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone};
use patterm_wire::events::format_time;

const FORMS: &str = "a duration (10m, 1h30m, 45s, 2d), a clock time (14:30), a date (2026-11-18, 2026-11-18 14:30) or \
    an RFC 3339 time (2026-11-18T14:30:00Z)";

/// Clocks skip an hour, or a whole day where a country moved to the other side of the date line.
const MOST_SKIPPED_MINUTES: i64 = 24 * 60;

/// A time, or a duration before now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// This many milliseconds ago.
    Ago(u64),
    /// The last time that it was this time of day.
    Clock(NaiveTime),
    /// At this local time.
    Local(NaiveDateTime),
    /// Milliseconds since 1970.
    At(u64),
}

impl Since {
    /// The time in milliseconds since 1970.
    pub(crate) fn wall_ms<Z: TimeZone>(self, now: &DateTime<Z>) -> u64 {
        let local = |time: NaiveDateTime| {
            // A time that the clocks skip in spring means the first one after it.
            let later = (0..=MOST_SKIPPED_MINUTES).map(TimeDelta::minutes);
            let mut later = later.filter_map(|by| time.checked_add_signed(by));
            let exact = later.find_map(|time| now.timezone().from_local_datetime(&time).earliest());
            exact.map_or(0, |time| time.timestamp_millis())
        };
        let at = match self {
            Self::Ago(ms) => {
                now.timestamp_millis().saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX))
            }
            Self::At(ms) => return ms,
            Self::Local(time) => local(time),
            Self::Clock(time) => {
                let today = now.date_naive();
                let at = local(today.and_time(time));
                let before = today.checked_sub_signed(TimeDelta::days(1)).unwrap_or(today);
                if at > now.timestamp_millis() { local(before.and_time(time)) } else { at }
            }
        };
        u64::try_from(at).unwrap_or(0)
    }

    /// The same with both moments, if the clocks were set back in autumn and the time was twice.
    pub(crate) fn moments<Z: TimeZone>(self, now: &DateTime<Z>) -> [u64; 2] {
        let first = self.wall_ms(now);
        let local = match self {
            Self::Ago(_) | Self::At(_) => return [first; 2],
            Self::Local(time) => time,
            Self::Clock(time) => {
                let first = i64::try_from(first).ok().and_then(DateTime::from_timestamp_millis);
                let day = first.unwrap_or_default().with_timezone(&now.timezone()).date_naive();
                day.and_time(time)
            }
        };
        let latest = now.timezone().from_local_datetime(&local).latest();
        let latest = latest.and_then(|time| u64::try_from(time.timestamp_millis()).ok());
        [first, latest.unwrap_or(first)]
    }

    /// The one moment that is meant, in milliseconds since 1970; an error if the time was twice.
    pub(crate) fn moment<Z: TimeZone>(self, now: &DateTime<Z>) -> Result<u64, String> {
        let moments = self.moments(now);
        if moments[0] == moments[1] {
            return Ok(moments[0]);
        }
        let [first, second] = moments.map(format_time);
        Err(format!(
            "the clocks were set back, so that time was twice: {first} and {second}; use one of them"
        ))
    }

    /// The time now, in the time zone of this machine.
    pub(crate) fn now(wall_ms: u64) -> DateTime<Local> {
        local_time(wall_ms)
    }
}

/// A time in the time zone of this machine.
pub(crate) fn local_time(wall_ms: u64) -> DateTime<Local> {
    let time = i64::try_from(wall_ms).ok().and_then(DateTime::from_timestamp_millis);
    time.unwrap_or_default().with_timezone(&Local)
}

impl std::str::FromStr for Since {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let given = given.trim();
        if let Some(ms) = duration_ms(given) {
            return Ok(Self::Ago(ms));
        }
        if let Ok(exact) = DateTime::parse_from_rfc3339(given) {
            return Ok(Self::At(u64::try_from(exact.timestamp_millis()).unwrap_or(0)));
        }
        let clock = ["%H:%M", "%H:%M:%S"].iter();
        if let Some(time) = clock.flat_map(|form| NaiveTime::parse_from_str(given, form)).next() {
            return Ok(Self::Clock(time));
        }
        let spaced = given.replace('T', " ");
        let forms = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f"].iter();
        let time = forms.flat_map(|form| NaiveDateTime::parse_from_str(&spaced, form)).next();
        let day =
            || Some(NaiveDate::parse_from_str(given, "%Y-%m-%d").ok()?.and_time(NaiveTime::MIN));
        time.or_else(day).map(Self::Local).ok_or_else(|| format!("it is not a time; use {FORMS}"))
    }
}

/// A duration such as `1h30m`, in milliseconds.
fn duration_ms(given: &str) -> Option<u64> {
    let (mut rest, mut sum) = (given, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = after;
    }
    (!given.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, MappedLocalTime};

    use super::*;

    #[test]
    fn times_as_people_write_them() {
        // 2026-11-18 09:00:00 in a zone two hours east.
        let zone = FixedOffset::east_opt(7_200).unwrap();
        let now = DateTime::parse_from_rfc3339("2026-11-18T09:00:00+02:00").unwrap();
        assert_eq!(now.timezone(), zone);
        let ms = |time: &str| DateTime::parse_from_rfc3339(time).unwrap().timestamp_millis() as u64;
        for (given, expected) in [
            ("10m", "2026-11-18T08:50:00+02:00"),
            ("1h30m", "2026-11-18T07:30:00+02:00"),
            ("500ms", "2026-11-18T08:59:59.5+02:00"),
            ("2d", "2026-11-16T09:00:00+02:00"),
            ("08:30", "2026-11-18T08:30:00+02:00"),
            ("08:30:15", "2026-11-18T08:30:15+02:00"),
            // Not yet today.
            ("14:30", "2026-11-17T14:30:00+02:00"),
            ("2026-11-17", "2026-11-17T00:00:00+02:00"),
            ("2026-11-17 14:30", "2026-11-17T14:30:00+02:00"),
            ("2026-11-17T14:30:05", "2026-11-17T14:30:05+02:00"),
            ("2026-11-17T14:30:05Z", "2026-11-17T14:30:05Z"),
        ] {
            let since: Since = given.parse().unwrap();
            assert_eq!(since.wall_ms(&now), ms(expected), "{given}");
        }
        for wrong in ["", "10", "m", "10 parsecs", "25:00", "yesterday", "99999999999999999999d"] {
            assert!(wrong.parse::<Since>().unwrap_err().contains("10m"), "{wrong}");
        }
        // Longer ago than the epoch.
        assert_eq!("9999999d".parse::<Since>().unwrap().wall_ms(&now), 0);
    }

    /// UTC until 02:00 on 2026-03-29, when clocks are put forward to 03:00.
    #[derive(Debug, Clone, Copy)]
    struct Spring;

    impl TimeZone for Spring {
        type Offset = FixedOffset;

        fn from_offset(_: &FixedOffset) -> Self {
            Self
        }

        fn offset_from_local_date(&self, _: &NaiveDate) -> MappedLocalTime<FixedOffset> {
            MappedLocalTime::None
        }

        fn offset_from_local_datetime(
            &self,
            local: &NaiveDateTime,
        ) -> MappedLocalTime<FixedOffset> {
            let (begin, end) = (skipped(2), skipped(3));
            match local {
                local if *local < begin => {
                    MappedLocalTime::Single(FixedOffset::east_opt(0).unwrap())
                }
                local if *local < end => MappedLocalTime::None,
                _ => MappedLocalTime::Single(FixedOffset::east_opt(3_600).unwrap()),
            }
        }

        fn offset_from_utc_date(&self, _: &NaiveDate) -> FixedOffset {
            FixedOffset::east_opt(0).unwrap()
        }

        fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> FixedOffset {
            FixedOffset::east_opt(if *utc < skipped(2) { 0 } else { 3_600 }).unwrap()
        }
    }

    fn skipped(hour: u32) -> NaiveDateTime {
        NaiveDate::from_ymd_opt(2026, 3, 29).unwrap().and_hms_opt(hour, 0, 0).unwrap()
    }

    #[test]
    fn a_time_that_the_clocks_skip_is_the_first_one_after_it() {
        let now = Spring.from_utc_datetime(&skipped(12));
        let first = skipped(2).and_utc().timestamp_millis() as u64;
        for given in ["02:30", "02:00", "2026-03-29 02:59", "03:00"] {
            assert_eq!(given.parse::<Since>().unwrap().wall_ms(&now), first, "{given}");
        }
    }

    /// Two hours east until 03:00 on 2026-10-25, when clocks are set back to 02:00.
    #[derive(Debug, Clone, Copy)]
    struct Autumn;

    fn autumn(hour: u32) -> NaiveDateTime {
        NaiveDate::from_ymd_opt(2026, 10, 25).unwrap().and_hms_opt(hour, 0, 0).unwrap()
    }

    impl TimeZone for Autumn {
        type Offset = FixedOffset;

        fn from_offset(_: &FixedOffset) -> Self {
            Self
        }

        fn offset_from_local_date(&self, _: &NaiveDate) -> MappedLocalTime<FixedOffset> {
            MappedLocalTime::None
        }

        fn offset_from_local_datetime(
            &self,
            local: &NaiveDateTime,
        ) -> MappedLocalTime<FixedOffset> {
            let [summer, winter] = [7_200, 3_600].map(|east| FixedOffset::east_opt(east).unwrap());
            match local {
                local if *local < autumn(2) => MappedLocalTime::Single(summer),
                local if *local < autumn(3) => MappedLocalTime::Ambiguous(summer, winter),
                _ => MappedLocalTime::Single(winter),
            }
        }

        fn offset_from_utc_date(&self, _: &NaiveDate) -> FixedOffset {
            FixedOffset::east_opt(3_600).unwrap()
        }

        fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> FixedOffset {
            FixedOffset::east_opt(if *utc < autumn(1) { 7_200 } else { 3_600 }).unwrap()
        }
    }

    #[test]
    fn a_time_that_was_twice_has_both_moments() {
        let now = Autumn.from_utc_datetime(&autumn(12));
        let utc = |hour: u32, minutes: u64| {
            autumn(hour).and_utc().timestamp_millis() as u64 + minutes * 60_000
        };
        for given in ["02:30", "2026-10-25 02:30"] {
            let moments = given.parse::<Since>().unwrap().moments(&now);
            assert_eq!(moments, [utc(0, 30), utc(1, 30)], "{given}");
        }
        for (given, expected) in [("03:30", utc(2, 30)), ("01:30", utc(0, 0) - 1_800_000)] {
            assert_eq!(given.parse::<Since>().unwrap().moments(&now), [expected; 2], "{given}");
        }
        assert_eq!("10m".parse::<Since>().unwrap().moments(&now), [utc(11, 50); 2]);
    }
}
