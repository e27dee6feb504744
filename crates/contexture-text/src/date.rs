//! Moments and durations in words.

use std::time::Duration;

const DAY_S: u64 = 24 * 60 * 60;
const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The names of months.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A day, as `2026-01-01`.
pub fn day(since_epoch: Duration) -> String {
    let (year, month, day) = civil(since_epoch.as_secs() / DAY_S);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A moment to the minute, as `2026-01-01 00:00`; the caller says in which zone.
pub fn minute(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil(seconds / DAY_S);
    let minutes = seconds % DAY_S / 60;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

/// The day of the week.
pub fn weekday(since_epoch: Duration) -> &'static str {
    WEEKDAYS[(since_epoch.as_secs() / DAY_S % 7) as usize]
}

/// About how long, as `3 hours`.
pub fn about(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / DAY_S, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Year, month and day of a day since 1970, in the calendar that is counted on for ever.
pub fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that the leap day is the last one of a year.
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + next, month, day)
}

fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day since 1970 of a year, month and day; `None` before 1970 and for what is no date.
pub fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_people_write_them() {
        let cases = [
            (0, "1970-01-01 00:00", "Thursday"),
            (951_827_696, "2000-02-29 12:34", "Tuesday"),
            (1_767_225_600, "2026-01-01 00:00", "Thursday"),
            (4_107_542_399, "2100-02-28 23:59", "Sunday"),
            (4_107_542_400, "2100-03-01 00:00", "Monday"),
        ];
        for (seconds, written, day) in cases {
            let moment = Duration::from_secs(seconds);
            assert_eq!((minute(moment).as_str(), weekday(moment)), (written, day));
        }
    }

    #[test]
    fn days_and_dates_are_the_same() {
        for day in (0..60_000).step_by(7) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), Some(day));
        }
        for (year, month, day) in [
            (1969, 12, 31),
            (2024, 0, 1),
            (2024, 13, 1),
            (2024, 1, 0),
            (2024, 1, 32),
            (2026, 2, 29),
            (2024, 2, 30),
            (2024, 4, 31),
        ] {
            assert_eq!(days(year, month, day), None);
        }
    }

    #[test]
    fn durations_are_told_in_the_unit_that_fits() {
        let cases =
            [(1, "1 second"), (119, "119 seconds"), (3_600, "60 minutes"), (7_200, "2 hours"), (172_800, "2 days")];
        for (seconds, told) in cases {
            assert_eq!(about(Duration::from_secs(seconds)), told);
        }
    }
}
