//! Times of events: milliseconds since 1970 as text, in UTC, as in RFC 3339.

const DAY_MS: u64 = 86_400_000;

/// The text of a time, such as `2026-11-16T09:12:03.118Z`.
#[must_use]
pub fn format_time(wall_ms: u64) -> String {
    let (days, ms) = (wall_ms / DAY_MS, wall_ms % DAY_MS);
    let (year, month, day) = date_of(days);
    let (hour, minute, second, ms) =
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The time of a text that [`format_time`] wrote.
#[must_use]
pub fn parse_time(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, [':']);
    let (hour, minute) = (time.next()?.parse::<u64>().ok()?, time.next()?.parse::<u64>().ok()?);
    let (second, ms) = time.next()?.split_once('.')?;
    let (second, ms) = (second.parse::<u64>().ok()?, ms.parse::<u64>().ok()?);
    let is_time = hour < 24 && minute < 60 && second < 60 && ms < 1_000;
    let is_date =
        (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    (is_time && is_date).then(|| {
        days_of(year, month, day) * DAY_MS
            + hour * 3_600_000
            + minute * 60_000
            + second * 1_000
            + ms
    })
}

/// Year, month and day of a day since 1970. Years are counted from March, so that the day that leap years add is
/// the last of its year; 400 of them always have the same number of days.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / (DAYS_OF_400_YEARS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    (year + era * 400, month, day)
}

fn days_of(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year / 400, year % 400);
    let day = (153 * month + 2) / 5 + day - 1;
    era * DAYS_OF_400_YEARS + year * 365 + year / 4 - year / 100 + day - DAYS_BEFORE_1970
}

const DAYS_OF_400_YEARS: u64 = 146_097;

/// The days from the first of March of year 0 to the first day of 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_and_read_back() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_794_820_323_118, "2026-11-16T09:12:03.118Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, text) in known {
            assert_eq!(format_time(ms), text);
            assert_eq!(parse_time(text), Some(ms));
        }
        for day in 0..80_000 {
            let ms = day * DAY_MS + day;
            assert_eq!(parse_time(&format_time(ms)), Some(ms));
        }
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in ["", "Z", "2026-11-16", "2026-13-01T00:00:00.000Z", "2026-11-16T24:00:00.000Z"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
