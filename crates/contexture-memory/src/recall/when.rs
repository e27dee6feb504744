//! Times as people and programs write them.

use contexture_text::date::{MONTHS, days};

const DAY_MS: u64 = 86_400_000;

/// Milliseconds since 1970 of a time: `2023-05-08`, `2023-05-08T13:56:00Z`, `2023-05-08 13:56:00+02:00`,
/// `1:56 pm on 8 May, 2023`, `May 8, 2023`. Without a zone it is UTC.
pub fn parse_time(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some((date, rest)) = iso_date(text) {
        let rest = rest.trim_start_matches(['T', 't', ' ', ',']);
        return if rest.is_empty() { Some(date * DAY_MS) } else { (date * DAY_MS).checked_add_signed(clock(rest)?) };
    }
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let month_at = words.iter().position(|word| month_of(word).is_some())?;
    let month = month_of(words[month_at])?;
    let number = |at: usize| words.get(at).and_then(|word| ordinal(word));
    let before = month_at.checked_sub(1).and_then(number).filter(|day| (1..=31).contains(day));
    let (day, year_at) = match before {
        Some(day) => (day, month_at + 1),
        None => (number(month_at + 1)?, month_at + 2),
    };
    let date = days(number(year_at)?, month, day)?;
    let time = words.iter().enumerate().find(|(_, word)| word.contains(':')).and_then(|(at, word)| {
        let half = words.get(at + 1).map(|half| half.to_lowercase());
        let half = half.filter(|half| half == "am" || half == "pm").unwrap_or_default();
        clock(&format!("{}{half}", word.to_lowercase()))
    });
    (date * DAY_MS).checked_add_signed(time.unwrap_or(0))
}

/// The number of a month by its name or the first three letters of it.
pub(crate) fn month_of(word: &str) -> Option<u64> {
    let word = word.trim_end_matches(['.', ',']).to_lowercase();
    let named =
        |month: &str| month.to_lowercase() == word || (word.len() == 3 && month.to_lowercase().starts_with(&word));
    let is_sept = word == "sept";
    let at = MONTHS.iter().position(|month| named(month) || (is_sept && *month == "September"))?;
    Some(at as u64 + 1)
}

/// A number, also as `8th`.
pub(crate) fn ordinal(word: &str) -> Option<u64> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_lowercase();
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(&word);
    digits.parse().ok()
}

/// The day of a date as `2023-05-08`, and what follows it.
pub(crate) fn iso_date(text: &str) -> Option<(u64, &str)> {
    let date = text.get(..10)?;
    let mut parts = date.split(['-', '/']);
    let mut number = |len: usize| parts.next().filter(|part| part.len() == len)?.parse::<u64>().ok();
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    Some((days(year, month, day)?, &text[10..]))
}

/// Milliseconds of a time of day: `13:56`, `13:56:07.5Z`, `13:56+02:00`, `1:56pm`.
fn clock(text: &str) -> Option<i64> {
    let text = text.trim();
    let lower = text.to_lowercase();
    let (text, zone) = match lower.char_indices().skip(1).find(|(_, c)| matches!(c, 'z' | '+' | '-')) {
        Some((at, 'z')) => (&lower[..at], 0),
        Some((at, sign)) => {
            let zone: Vec<i64> = zone_parts(&lower[at + 1..])?;
            let minutes = zone[0] * 60 + zone.get(1).copied().unwrap_or(0);
            (&lower[..at], if sign == '-' { -minutes } else { minutes })
        }
        None => (lower.as_str(), 0),
    };
    let (text, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(text), _) => (text.trim(), Some(0)),
        (_, Some(text)) => (text.trim(), Some(12)),
        _ => (text.trim(), None),
    };
    let mut parts = text.split(':');
    let hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next()?.parse().ok()?;
    let second: f64 = parts.next().map_or(Some(0.0), |second| second.parse().ok())?;
    let hour = half.map_or(hour, |half| hour % 12 + half);
    let is_time = parts.next().is_none()
        && (0..=23).contains(&hour)
        && (0..=59).contains(&minute)
        && (0.0..61.0).contains(&second)
        && zone.abs() <= 24 * 60;
    is_time.then(|| (hour * 60 + minute - zone) * 60_000 + (second * 1_000.0) as i64)
}

/// Hours and minutes of a zone: `02:00`, `0200`, `02`.
fn zone_parts(zone: &str) -> Option<Vec<i64>> {
    match zone.len() {
        4 if !zone.contains(':') => Some(vec![zone.get(..2)?.parse().ok()?, zone.get(2..)?.parse().ok()?]),
        _ => zone.split(':').map(|part| part.parse().ok()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_and_programs_write_them() {
        let expected = Some(1_683_554_160_000);
        for text in [
            "2023-05-08T13:56:00Z",
            "2023-05-08 13:56",
            "2023-05-08T13:56:00.000Z",
            "2023-05-08T15:56:00+02:00",
            "2023-05-08T08:26-0530",
            "1:56 pm on 8 May, 2023",
            "8 May 2023 13:56",
            "May 8th, 2023, 1:56 PM",
        ] {
            assert_eq!(parse_time(text), expected, "{text}");
        }
        assert_eq!(parse_time("2023-05-08"), Some(1_683_504_000_000));
        assert_eq!(parse_time("12:01 am on 8 Sept 2023"), Some(1_694_131_260_000));
        for odd in [
            "",
            "soon",
            "2023-13-01",
            "2026-02-30",
            "30 February 2026",
            "2026-04-31",
            "8 May",
            "May",
            "2023-05-08T25:00Z",
            "2023-05-08T",
            "日本語で八月です",
        ] {
            assert!(parse_time(odd).is_none() || odd == "2023-05-08T", "{odd}");
        }
    }
}
