//! Days of the calendar.

/// The day of a time in milliseconds since the Unix epoch, in UTC.
///
/// ```
/// use contexture_server::account::day::day_of;
/// assert_eq!(day_of(0), "1970-01-01");
/// assert_eq!(day_of(951_782_400_000), "2000-02-29");
/// assert_eq!(day_of(1_763_164_799_999), "2025-11-14");
/// assert_eq!(day_of(1_763_164_800_000), "2025-11-15");
/// ```
pub fn day_of(time_ms: u64) -> String {
    // Days since 1 March of the year 0, so that a leap day is the last of its year.
    let days = (time_ms / 86_400_000) as i64 + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + carry)
}
