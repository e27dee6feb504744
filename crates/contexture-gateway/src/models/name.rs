//! The name of a model without what others add to it: who sells it, where it runs, its date.

/// Names of sellers before a model's name, with a dot.
const SELLERS: [&str; 2] = ["anthropic.", "openai."];

/// A model's name as the table has it.
pub(crate) fn plain(name: &str) -> String {
    let name = name.trim().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.split(['[', ':', '@']).next().unwrap_or_default();
    let sold = SELLERS.iter().find_map(|seller| name.rfind(seller).map(|at| &name[at + seller.len()..]));
    let mut name = sold.unwrap_or(name);
    for end in ["-v1", "-v2", "-latest"] {
        name = name.strip_suffix(end).unwrap_or(name);
    }
    name = without_date(name);
    // Some write the version of a Claude model with a dot.
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

/// A name without a date at its end: `-20250929` or `-2025-09-29`.
fn without_date(name: &str) -> &str {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    for len in [9, 11] {
        let Some(at) = name.len().checked_sub(len).filter(|at| name.is_char_boundary(*at)) else { continue };
        let date = name[at..].replace('-', "");
        if name[at..].starts_with("-20") && date.len() == 8 && is_digits(&date) {
            return &name[..at];
        }
    }
    name
}
