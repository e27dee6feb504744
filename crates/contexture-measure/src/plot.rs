//! A plot in the terminal: tokens per step, with and without a policy.

/// The smallest width of a plot.
const MIN_WIDTH: usize = 23;

/// The fewest rows for the values.
const MIN_HEIGHT: usize = 3;

/// Columns for a label of the tokens.
const LABEL_WIDTH: usize = 5;

/// Columns for the labels, a space and the axis.
const AXIS_WIDTH: usize = LABEL_WIDTH + 2;

/// Eighths of a cell, from none to all.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What fills the room between the two series.
const SHADE: char = '░';

/// One value for each step.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// What the values are, for the legend.
    pub name: &'a str,
    /// The values.
    pub values: &'a [u64],
}

/// Draws `after` as a filled area and what `before` has above it as a shade, in at most `width` columns.
///
/// `height` is the number of rows for the values; the axis, its labels and the legend come below. Where there are more
/// steps than columns, a column shows the largest of its steps, so that no peak is lost. Without values nothing is drawn.
///
/// ```
/// use contexture_measure::plot::{Series, plot};
/// let before = Series { name: "before", values: &[10, 20, 30, 40] };
/// let after = Series { name: "after", values: &[10, 20, 10, 20] };
/// let picture = plot(before, after, 23, 4);
/// assert_eq!(picture.lines().next(), Some("   40 ┤            ░░░░"));
/// assert_eq!(picture.lines().last(), Some("█ after  ░ before"));
/// ```
pub fn plot(before: Series<'_>, after: Series<'_>, width: usize, height: usize) -> String {
    let steps = before.values.len().max(after.values.len());
    let max = before.values.iter().chain(after.values).copied().max().unwrap_or(0);
    if steps == 0 {
        return String::new();
    }
    let columns = width.max(MIN_WIDTH) - AXIS_WIDTH;
    let height = height.max(MIN_HEIGHT);
    let scale = |values: &[u64]| -> Vec<u64> {
        (0..columns).map(|column| eighths(largest(values, steps, column, columns), max, height)).collect()
    };
    let (before_levels, after_levels) = (scale(before.values), scale(after.values));
    let mut picture = String::new();
    for row in (0..height).rev() {
        picture.push_str(&label(row, height, max));
        let cells = before_levels.iter().zip(&after_levels).map(|(&before, &after)| cell(row, before, after));
        let line: String = cells.collect();
        picture.push_str(line.trim_end());
        picture.push('\n');
    }
    picture.push_str(&axis(steps, columns));
    picture.push_str(&legend(after.name, before.name, width));
    picture
}

/// The legend: below the plot, from the first column, or on two lines, depending on the width.
fn legend(after: &str, before: &str, width: usize) -> String {
    let legend = format!("█ {after}  {SHADE} {before}");
    let len = legend.chars().count();
    match width.max(MIN_WIDTH) {
        width if AXIS_WIDTH + len <= width => format!("{:AXIS_WIDTH$}{legend}\n", ""),
        width if len <= width => format!("{legend}\n"),
        _ => format!("█ {after}\n{SHADE} {before}\n"),
    }
}

/// The largest value among the steps of a column.
fn largest(values: &[u64], steps: usize, column: usize, columns: usize) -> u64 {
    let start = column * steps / columns;
    let end = ((column + 1) * steps / columns).max(start + 1).min(values.len());
    values.get(start.min(end)..end).into_iter().flatten().copied().max().unwrap_or(0)
}

/// A value as eighths of a row, rounded up so that small values are visible.
fn eighths(value: u64, max: u64, height: usize) -> u64 {
    let full = height as u64 * 8;
    let scaled = (u128::from(value) * u128::from(full)).div_ceil(u128::from(max.max(1)));
    u64::try_from(scaled).unwrap_or(full).min(full)
}

fn cell(row: usize, before: u64, after: u64) -> char {
    let floor = row as u64 * 8;
    let filled = after.saturating_sub(floor).min(8);
    if filled == 0 && before > floor { SHADE } else { EIGHTHS[filled as usize] }
}

/// The label of a row: numbers at the top and in the middle.
fn label(row: usize, height: usize, max: u64) -> String {
    let middle = height / 2;
    let tokens = match row + 1 {
        top if top == height => Some(max),
        row if row == middle && middle > 1 => Some((u128::from(max) * middle as u128 / height as u128) as u64),
        _ => None,
    };
    let axis = if tokens.is_some() { '┤' } else { '│' };
    format!("{:>LABEL_WIDTH$} {axis}", tokens.map(short_count).unwrap_or_default())
}

fn axis(steps: usize, columns: usize) -> String {
    let last = format!("{steps} steps");
    let gap = columns.saturating_sub(1);
    format!("{:>LABEL_WIDTH$} ┼{}\n{:AXIS_WIDTH$}1{last:>gap$}\n", 0, "─".repeat(columns), "")
}

/// A count in at most four characters: `950`, `1.5k`, `32k`, `1.2M`.
pub fn short_count(count: u64) -> String {
    if count < 1_000 {
        return count.to_string();
    }
    let mut scaled = count as f64 / 1e3;
    let mut units = ['k', 'M', 'G', 'T', 'P', 'E'].into_iter();
    let mut unit = units.next().unwrap_or('k');
    // A value that would be rounded to 1000 belongs to the next unit.
    while scaled >= 999.5
        && let Some(next) = units.next()
    {
        (scaled, unit) = (scaled / 1e3, next);
    }
    let text = if scaled < 9.95 { format!("{scaled:.1}") } else { format!("{scaled:.0}") };
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}
