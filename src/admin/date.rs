//! Moments as people read them, in UTC.

/// Seconds of a day.
const DAY: u64 = 86_400;

/// A moment taken apart: year, month, day, hour, minute and second, in UTC.
#[must_use]
pub fn parts(seconds: u64) -> [u64; 6] {
    let (year, month, day) = date(seconds / DAY);
    [
        year,
        month,
        day,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ]
}

/// The date so many days after the first of 1970, by Howard Hinnant's `civil_from_days`: years
/// begin in March, so that a leap day is the last of one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day = days % 146_097;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next = month >= 10;
    let month = if is_next { month - 9 } else { month + 3 };
    (year + era * 400 + u64::from(is_next), month, day)
}

/// A moment, in seconds since 1970, as the console shows it: `2026-11-23 10:42:41 UTC`.
#[must_use]
pub fn text(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = parts(seconds);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The moment with these parts, in seconds since 1970, by Howard Hinnant's `days_from_civil`.
/// `None` if it was before, or there is no such month or day of one.
#[must_use]
pub fn seconds([year, month, day, hour, minute, second]: [u64; 6]) -> Option<u64> {
    let is_early = month <= 2;
    let shifted = if is_early {
        month + 9
    } else {
        month.checked_sub(3)?
    };
    let year = year.checked_sub(u64::from(is_early))?;
    let of_year = (153 * shifted + 2) / 5 + day.checked_sub(1)?;
    let leaps = (year / 4 + year / 400).checked_sub(year / 100)?;
    let days = (year * 365 + leaps + of_year).checked_sub(719_468)?;
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    // A day that its month does not have would be one of the next.
    let given = [year + u64::from(is_early), month, day, hour, minute, second];
    (parts(seconds) == given).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(text(seconds), expected);
        }
    }

    #[test]
    fn a_date_leads_back_to_its_moment() {
        for at in (0..8_000_000_000).step_by(1_234_567) {
            assert_eq!(seconds(parts(at)), Some(at));
        }
        for wrong in [
            [1969, 12, 31, 23, 59, 59],
            [2001, 2, 29, 0, 0, 0],
            [2001, 13, 1, 0, 0, 0],
            [2001, 0, 1, 0, 0, 0],
            [2001, 1, 0, 0, 0, 0],
            [2001, 1, 1, 24, 0, 0],
            [0; 6],
        ] {
            assert_eq!(seconds(wrong), None, "{wrong:?}");
        }
    }
}
