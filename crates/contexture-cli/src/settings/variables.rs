//! Values from the environment: `CONTEXTURE_BUDGET` for the key `budget`.

use super::error::{ConfigError, clip};
use super::nearest::nearest;
use super::origin::{Setting, SettingOfSource, SettingOrigin};
use super::row::{SettingRow, VARIABLE_PREFIX};

/// The variable that names a file which is used instead of the project's.
pub const FILE_VARIABLE: &str = "CONTEXTURE_CONFIG";

/// The variable by which an agent, and what it starts, is told the address of its gateway. It sets no key.
pub const GATEWAY_VARIABLE: &str = "CONTEXTURE_GATEWAY";

/// Reads the variables that belong to keys. An empty variable counts as not set, as shells have no other way to unset
/// one for a single command.
pub(super) fn read(
    rows: &'static [SettingRow],
    variables: &[(String, String)],
) -> Result<Vec<SettingOfSource>, ConfigError> {
    let mut given = Vec::new();
    for row in rows {
        let is_own = |(name, text): &&(String, String)| row.variable().as_ref() == Some(name) && !text.is_empty();
        let Some((name, text)) = variables.iter().find(is_own) else { continue };
        let origin = SettingOrigin::Variable(name.clone());
        let found = if row.kind.is_secret() { String::new() } else { format!("is `{}`, but ", clip(text)) };
        let read = row.kind.read_text(text).ok_or_else(|| format!("{found}must be {}", row.kind.wanted()));
        let value = read.and_then(|value| row.accept(value)).map_err(|problem| {
            let hint = || format!("write it as `{name}={}`", row.example.trim_matches('"'));
            let hint = row.kind.near_choice(text).unwrap_or_else(hint);
            ConfigError::new(&origin, &format!("`{}` {problem}", row.name), hint)
        })?;
        given.push((row, Setting { value, origin }));
    }
    Ok(given)
}

/// The variables of this program that set no key.
const OTHERS: [&str; 2] = [FILE_VARIABLE, GATEWAY_VARIABLE];

/// The variables that look as if they set a key and do not, each with the variable that was probably meant.
pub(super) fn unknown(rows: &[SettingRow], variables: &[(String, String)]) -> Vec<(String, Option<String>)> {
    let known: Vec<String> = rows.iter().filter_map(SettingRow::variable).chain(OTHERS.map(str::to_owned)).collect();
    let names = variables.iter().map(|(name, _)| name);
    let names = names.filter(|name| name.starts_with(VARIABLE_PREFIX) && !known.contains(name));
    // Only what follows the prefix is compared, so that its length does not make everything look near.
    let suffix = |name: &str| name.strip_prefix(VARIABLE_PREFIX).unwrap_or(name).to_owned();
    let suffixes: Vec<String> = known.iter().map(|name| suffix(name)).collect();
    let meant = |name: &String| nearest(&suffix(name), suffixes.iter().map(String::as_str));
    let told = |name: &String| (name.clone(), meant(name).map(|meant| format!("{VARIABLE_PREFIX}{meant}")));
    let mut unknown: Vec<(String, Option<String>)> = names.map(told).collect();
    unknown.sort();
    unknown
}
