//! Points in time as recordings write them.

use contexture_text::date::days;

/// Milliseconds since the Unix epoch of a time in the form `2025-01-31T12:34:56.789Z`, with or without the fraction.
///
/// Returns `None` for other forms, other zones and times before the epoch; the recording is then used without the time.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':')?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let thousandths: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000 + thousandths)
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse::<u64>().ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_are_read_in_one_form_and_refused_in_others() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
        check("1970-01-01T00:00:00Z", Some(0));
        check("2000-02-29T12:00:00.5Z", Some(951_825_600_500));
        check("2000-03-01T00:00:00.000Z", Some(951_868_800_000));
        check("2025-09-30T23:59:59.123456Z", Some(1_759_276_799_123));
        check("2024-12-31T00:00:00.007Z", Some(1_735_603_200_007));
        for odd in
            ["", "Z", "TZ", "2025-09-30", "2025-09-30T23:59:59", "2025-09-30T23:59:59+02:00", "2025-13-01T00:00:00Z"]
        {
            check(odd, None);
        }
        check("2025-02-29T00:00:00Z", None);
        for odd in ["1969-12-31T23:59:59Z", "2025-09-30T23:59:59.xZ", "2025-09-30T23:59:59.äöZ", "2025-09-30T24:00:00Z"]
        {
            check(odd, None);
        }
    }
}
