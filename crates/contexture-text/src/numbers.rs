//! Numbers as people read them.

/// A count with its noun, as `1 file` and `2 files`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count as u64), if count == 1 { "" } else { "s" })
}

/// A number in groups of three digits, as `12 345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_digits_are_in_groups() {
        let all = [0, 1, 2, 999, 1_000, 1_234_567].map(|count| counted(count, "file"));
        assert_eq!(all, ["0 files", "1 file", "2 files", "999 files", "1 000 files", "1 234 567 files"]);
    }
}
