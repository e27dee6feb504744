//! How many tokens each layer and the history may use.
//!
//! Pure functions of numbers. [`allocate`] divides the window before any layer is recalled. What layers do not use goes
//! to history: [`Allotments::settle`] says how much that is. The engine does not call it, because a window also holds
//! anchors from earlier requests, updates and guidance; there [`LayerUsage::yielded`](crate::usage::LayerUsage::yielded)
//! is what a layer did not use.
//!
//! Every share is rounded down to whole tokens, and history gets the rest, at most one token for each layer. With the
//! largest-remainder method layers would get those few tokens, but then a layer could get one token less in a larger
//! window than in a smaller one.

use crate::layer::BudgetConfig;
use crate::tokens::MAX_TOKENS;

/// The window to divide, and the layers' requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetInput<'a> {
    /// The whole window.
    pub total: u64,
    /// Tokens reserved for the response.
    pub response_reserve: u64,
    /// Tokens of the system prompt.
    pub system: u64,
    /// Tokens of the tools' schemas.
    pub tools: u64,
    /// The budget configuration of each layer.
    pub layers: &'a [BudgetConfig],
}

/// The tokens that each layer and history may use.
///
/// The allotments of all layers and of history always add up to `available`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allotments {
    /// The tokens to divide; 0 if reserve, system and tools take the whole window.
    pub available: u64,
    /// What each layer may use, in the order of the input.
    pub layers: Vec<u64>,
    /// What history may use even if every layer uses all of its allotment.
    pub history: u64,
}

/// What is left after every layer was recalled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// What each layer left of its allotment, in the order of the input.
    pub yielded: Vec<u64>,
    /// What history may use: its own allotment and everything that was yielded.
    pub history: u64,
}

/// An invalid number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct BudgetError {
    /// Which one: `total`, `layers[2].min`.
    pub field: String,
    /// What is wrong with it, to be read after the field's name.
    pub problem: String,
}

/// Divides a window.
///
/// The total minus response reserve, system and tools is divided in this order:
///
/// 1. Every layer gets its minimum. If there is not enough for all minimums, each gets the same fraction of its
///    own, and nothing else.
/// 2. Of the rest, 60 % is the layers' pool and 40 % is reserved for history.
/// 3. Layers with a maximum are filled from the pool, the smallest first: all are raised to one level, except those
///    whose maximum is below it or whose minimum is above it. So a layer that asks for little gets it, however much
///    others may use. If there are auto layers, these take no more than half of the pool, or their part by number if that
///    is more.
/// 4. The auto layers split what remains of the pool evenly.
/// 5. History gets everything else.
///
/// No layer gets more than its maximum. With the same layers, a larger total never gives any layer less.
///
/// ```
/// use contexture_core::BudgetConfig::{Auto, Cap, Range};
/// use contexture_core::budget::{BudgetInput, allocate};
///
/// // Two caps: the pool of 6000 is more than both can use.
/// let layers = [Cap(3000), Cap(1000)];
/// let allotments = allocate(&BudgetInput { total: 10_000, layers: &layers, ..Default::default() })?;
/// assert_eq!((allotments.layers, allotments.history), (vec![3000, 1000], 6000));
///
/// // The second is auto: it gets the part of the pool that the first cannot use.
/// let layers = [Cap(3000), Auto];
/// let allotments = allocate(&BudgetInput { total: 10_000, layers: &layers, ..Default::default() })?;
/// assert_eq!((allotments.layers, allotments.history), (vec![3000, 3000], 4000));
///
/// // A large maximum does not take from a small one.
/// let layers = [Cap(27_000), Cap(200), Auto];
/// let allotments = allocate(&BudgetInput { total: 10_000, layers: &layers, ..Default::default() })?;
/// assert_eq!((allotments.layers, allotments.history), (vec![3800, 200, 2000], 4000));
///
/// // Minimums that do not fit.
/// let layers = [Range { min: 600, max: 1000 }, Range { min: 600, max: 1000 }];
/// let allotments = allocate(&BudgetInput { total: 1000, layers: &layers, ..Default::default() })?;
/// assert_eq!((allotments.layers, allotments.history), (vec![500, 500], 0));
/// # Ok::<(), contexture_core::budget::BudgetError>(())
/// ```
///
/// # Errors
/// Names the first number that is above [`MAX_TOKENS`], or the first minimum that is above its maximum.
pub fn allocate(input: &BudgetInput<'_>) -> Result<Allotments, BudgetError> {
    input.validate()?;
    let available = input.available();
    let minimums = sum(input.layers.iter().map(|layer| layer.min()));
    let layers = if minimums > u128::from(available) {
        input.layers.iter().map(|layer| share(available, layer.min(), minimums)).collect()
    } else {
        // The cast is exact: minimums are at most `available` here.
        share_rest(input.layers, available - minimums as u64)
    };
    let history = available - layers.iter().sum::<u64>();
    Ok(Allotments { available, layers, history })
}

impl BudgetInput<'_> {
    fn available(&self) -> u64 {
        self.total.saturating_sub(self.response_reserve).saturating_sub(self.system).saturating_sub(self.tools)
    }

    fn validate(&self) -> Result<(), BudgetError> {
        check("total", self.total)?;
        check("response_reserve", self.response_reserve)?;
        check("system", self.system)?;
        check("tools", self.tools)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let Some(max) = layer.max() else { continue };
            check(&format!("layers[{index}].max"), max)?;
            if layer.min() > max {
                let problem = format!("is above its maximum ({} > {max})", layer.min());
                return Err(BudgetError { field: format!("layers[{index}].min"), problem });
            }
        }
        Ok(())
    }
}

fn check(field: &str, tokens: u64) -> Result<(), BudgetError> {
    if tokens <= MAX_TOKENS {
        return Ok(());
    }
    Err(BudgetError { field: field.into(), problem: format!("is above {MAX_TOKENS} ({tokens})") })
}

/// The layers' allotments when all minimums fit and `rest` is left after them.
fn share_rest(layers: &[BudgetConfig], rest: u64) -> Vec<u64> {
    let pool = share(rest, 60, 100);
    let autos = layers.iter().filter(|layer| layer.max().is_none()).count() as u64;
    let headrooms = sum(layers.iter().filter_map(headroom));
    let finite = layers.len() as u64 - autos;
    let limit = if autos == 0 { pool } else { share(pool, finite.max(autos), u128::from(finite.max(autos) + autos)) };
    let finite_pool = u128::from(limit).min(headrooms) as u64;
    // Computed from the pool of the finite layers, not from the sum of their rounded shares: that sum can
    // grow by several tokens when the pool grows by one, and then the auto layers would get less.
    let auto_pool = pool - finite_pool;
    let level = level(layers, finite_pool);
    layers.iter().map(|layer| up_to(layer, level).unwrap_or_else(|| auto_pool / autos)).collect()
}

/// What a layer with a maximum gets when all are filled up to a level; `None` for auto.
fn up_to(layer: &BudgetConfig, level: u64) -> Option<u64> {
    layer.max().map(|max| level.clamp(layer.min(), max))
}

/// The highest level to which the layers with a maximum can be filled with `pool` tokens beyond their minimums.
fn level(layers: &[BudgetConfig], pool: u64) -> u64 {
    let costs = |level| sum(layers.iter().filter_map(|layer| Some(up_to(layer, level)? - layer.min())));
    let (mut low, mut high) = (0, MAX_TOKENS);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match costs(middle) <= u128::from(pool) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

/// What a layer can use beyond its minimum; `None` for auto.
fn headroom(layer: &BudgetConfig) -> Option<u64> {
    layer.max().map(|max| max - layer.min())
}

/// `amount * part / whole`, rounded down; 0 if `whole` is 0. `part` is at most `whole`.
fn share(amount: u64, part: u64, whole: u128) -> u64 {
    // The cast is exact: the share is at most `amount`.
    (u128::from(amount) * u128::from(part)).checked_div(whole).unwrap_or(0) as u64
}

fn sum(tokens: impl Iterator<Item = u64>) -> u128 {
    tokens.map(u128::from).sum()
}

impl Allotments {
    /// Adds to history what layers did not use. `used` is in the order of `layers`; missing entries count as 0.
    ///
    /// A layer that used more than its allotment yields nothing, and the excess is subtracted from history, down to 0.
    ///
    /// ```
    /// use contexture_core::budget::Allotments;
    /// let allotments = Allotments { available: 8000, layers: vec![1600, 1600, 1600], history: 3200 };
    /// let settlement = allotments.settle(&[1600, 100, 0]);
    /// assert_eq!((settlement.yielded, settlement.history), (vec![0, 1500, 1600], 6300));
    /// ```
    pub fn settle(&self, used: &[u64]) -> Settlement {
        let used_by = |index: usize| used.get(index).copied().unwrap_or(0);
        let yielded = self.layers.iter().enumerate().map(|(index, allotted)| allotted.saturating_sub(used_by(index)));
        let history = (0..self.layers.len()).fold(self.available, |left, index| left.saturating_sub(used_by(index)));
        Settlement { yielded: yielded.collect(), history }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::BudgetConfig::{Auto, Cap, Range};

    fn input(total: u64, layers: &[BudgetConfig]) -> BudgetInput<'_> {
        BudgetInput { total, layers, ..Default::default() }
    }

    #[track_caller]
    fn check(input: BudgetInput<'_>, layers: &[u64], history: u64) {
        let available = layers.iter().sum::<u64>() + history;
        assert_eq!(allocate(&input), Ok(Allotments { available, layers: layers.to_vec(), history }));
    }

    #[track_caller]
    fn check_refused(input: BudgetInput<'_>, message: &str) {
        assert_eq!(allocate(&input).map_err(|error| error.to_string()), Err(message.to_owned()));
    }

    #[test]
    fn zero_to_3000_and_zero_to_1000_get_3000_and_1000() {
        check(input(10_000, &[Range { min: 0, max: 3000 }, Range { min: 0, max: 1000 }]), &[3000, 1000], 6000);
    }

    #[test]
    fn zero_to_m_and_auto_share_6000_with_m_at_most_3000() {
        check(input(10_000, &[Range { min: 0, max: 1000 }, Auto]), &[1000, 5000], 4000);
        check(input(10_000, &[Range { min: 0, max: 3000 }, Auto]), &[3000, 3000], 4000);
        check(input(10_000, &[Range { min: 0, max: 9000 }, Auto]), &[3000, 3000], 4000);
    }

    #[test]
    fn three_autos_with_system_1000_and_reserve_1000_get_1600_each_and_history_3200() {
        let layers = [Auto, Auto, Auto];
        let input = BudgetInput { system: 1000, response_reserve: 1000, ..input(10_000, &layers) };
        check(input, &[1600, 1600, 1600], 3200);
    }

    #[test]
    fn two_of_600_to_1000_in_1000_get_500_each_and_history_0() {
        check(input(1000, &[Range { min: 600, max: 1000 }, Range { min: 600, max: 1000 }]), &[500, 500], 0);
    }

    #[test]
    fn a_bare_number_is_a_cap() {
        check(input(10_000, &[Cap(700)]), &[700], 9300);
        check(input(1000, &[Cap(700)]), &[600], 400);
    }

    #[test]
    fn finite_layers_are_filled_to_one_level() {
        // 1000 − 100 leaves 900; the pool of 540 and the minimum raise both to 320.
        check(input(1000, &[Range { min: 100, max: 400 }, Cap(600)]), &[320, 320], 360);
        check(input(1000, &[Range { min: 400, max: 500 }, Cap(600), Cap(50)]), &[400, 310, 50], 240);
        check(input(12_000, &[Cap(200), Cap(27_000), Auto]), &[200, 4600, 2400], 4800);
    }

    #[test]
    fn autos_do_not_take_part_when_minimums_overcommit() {
        check(input(100, &[Range { min: 150, max: 200 }, Auto, Range { min: 50, max: 50 }]), &[75, 0, 25], 0);
    }

    #[test]
    fn what_rounding_leaves_goes_to_history() {
        check(input(1000, &[Range { min: 600, max: 600 }; 3]), &[333, 333, 333], 1);
        check(input(10, &[Auto, Auto, Auto, Auto]), &[1, 1, 1, 1], 6);
    }

    #[test]
    fn without_layers_history_gets_everything() {
        check(BudgetInput { tools: 300, ..input(1000, &[]) }, &[], 700);
    }

    #[test]
    fn nothing_is_available_when_reserve_system_and_tools_exceed_the_total() {
        let layers = [Range { min: 5, max: 10 }, Auto];
        let input = BudgetInput { response_reserve: 50, system: 30, tools: 21, ..input(100, &layers) };
        check(input, &[0, 0], 0);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_by_name() {
        let above = MAX_TOKENS + 1;
        check_refused(input(above, &[]), "`total` is above 1099511627776 (1099511627777)");
        let tools = BudgetInput { tools: u64::MAX, ..input(1, &[]) };
        check_refused(tools, "`tools` is above 1099511627776 (18446744073709551615)");
        check_refused(input(1, &[Auto, Cap(above)]), "`layers[1].max` is above 1099511627776 (1099511627777)");
        let layers = [Range { min: 2, max: 1 }];
        check_refused(input(1, &layers), "`layers[0].min` is above its maximum (2 > 1)");
    }

    #[test]
    fn history_pays_for_a_layer_that_used_too_much() {
        let allotments = Allotments { available: 100, layers: vec![30, 30], history: 40 };
        assert_eq!(allotments.settle(&[50, 10]), Settlement { yielded: vec![0, 20], history: 40 });
        assert_eq!(allotments.settle(&[u64::MAX, 10]), Settlement { yielded: vec![0, 20], history: 0 });
        assert_eq!(allotments.settle(&[]), Settlement { yielded: vec![30, 30], history: 100 });
    }

    /// Small numbers, where rounding shows, as often as numbers up to the largest.
    fn any_tokens() -> impl Strategy<Value = u64> {
        prop_oneof![0..50_u64, 0..20_000_u64, 0..=MAX_TOKENS, Just(MAX_TOKENS)]
    }

    fn any_layer() -> impl Strategy<Value = BudgetConfig> {
        prop_oneof![
            Just(Auto),
            any_tokens().prop_map(Cap),
            (any_tokens(), any_tokens()).prop_map(|(a, b)| Range { min: a.min(b), max: a.max(b) }),
        ]
    }

    prop_compose! {
        fn any_parts()(parts in prop::array::uniform4(any_tokens()), layers in prop::collection::vec(any_layer(), 0..12))
            -> ([u64; 4], Vec<BudgetConfig>) {
            (parts, layers)
        }
    }

    fn allotted([total, response_reserve, system, tools]: [u64; 4], layers: &[BudgetConfig]) -> Allotments {
        allocate(&BudgetInput { total, response_reserve, system, tools, layers }).unwrap()
    }

    proptest! {
        #[test]
        fn allotments_add_up_and_no_layer_is_above_its_maximum((parts, layers) in any_parts()) {
            let allotments = allotted(parts, &layers);
            prop_assert_eq!(allotments.layers.len(), layers.len());
            prop_assert_eq!(allotments.layers.iter().sum::<u64>() + allotments.history, allotments.available);
            let taken = parts[1..].iter().sum::<u64>();
            prop_assert_eq!(allotments.available, parts[0].saturating_sub(taken));
            for (layer, allotment) in layers.iter().zip(allotments.layers) {
                prop_assert!(layer.max().is_none_or(|max| allotment <= max));
            }
        }

        #[test]
        fn minimums_are_honoured_when_they_fit((parts, layers) in any_parts()) {
            let allotments = allotted(parts, &layers);
            let fit = layers.iter().map(|layer| layer.min()).sum::<u64>() <= allotments.available;
            for (layer, allotment) in layers.iter().zip(allotments.layers) {
                let honoured = if fit { allotment >= layer.min() } else { allotment <= layer.min() };
                prop_assert!(honoured);
            }
        }

        #[test]
        fn history_is_left_at_least_two_fifths_of_what_minimums_leave((parts, layers) in any_parts()) {
            let allotments = allotted(parts, &layers);
            let minimums = layers.iter().map(|layer| layer.min()).sum::<u64>();
            let rest = allotments.available.saturating_sub(minimums);
            prop_assert!(u128::from(allotments.history) * 5 >= u128::from(rest) * 2);
        }

        #[test]
        fn a_layer_that_asks_for_no_more_than_an_even_part_gets_it((parts, layers) in any_parts()) {
            let allotments = allotted(parts, &layers);
            let minimums = layers.iter().map(|layer| layer.min()).sum::<u64>();
            let even = allotments.available.saturating_sub(minimums) / 10 * 6 / (layers.len() as u64).max(1);
            for (layer, allotment) in layers.iter().zip(allotments.layers) {
                prop_assert!(layer.max().is_none_or(|max| max > even || allotment == max));
            }
        }

        #[test]
        fn autos_get_the_same_and_half_the_pool_or_an_even_part((parts, layers) in any_parts()) {
            let allotments = allotted(parts, &layers);
            let minimums = layers.iter().map(|layer| layer.min()).sum::<u64>();
            let pool = allotments.available.saturating_sub(minimums) / 10 * 6;
            let autos: Vec<_> = layers.iter().zip(&allotments.layers).filter(|(layer, _)| **layer == Auto).collect();
            for (_, allotment) in &autos {
                prop_assert_eq!(*allotment, autos[0].1);
                let parts = (2 * autos.len()).max(layers.len()) as u64;
                prop_assert!(**allotment + 1 >= pool / parts);
            }
        }

        #[test]
        fn a_larger_total_gives_no_layer_less(
            (parts, layers) in any_parts(),
            more in prop_oneof![0..4_u64, any_tokens()],
        ) {
            let larger = [(parts[0] + more).min(MAX_TOKENS), parts[1], parts[2], parts[3]];
            let (before, after) = (allotted(parts, &layers), allotted(larger, &layers));
            for (before, after) in before.layers.iter().zip(&after.layers) {
                prop_assert!(before <= after);
            }
            // History can lose what rounding left it before, and no more.
            prop_assert!(before.history <= after.history + layers.len() as u64 + 1);
        }

        #[test]
        fn settling_loses_nothing((parts, layers) in any_parts(), fractions in prop::collection::vec(0..=4_u64, 12)) {
            let allotments = allotted(parts, &layers);
            let used: Vec<u64> = allotments.layers.iter().zip(fractions).map(|(all, part)| all / 4 * part).collect();
            let settlement = allotments.settle(&used);
            prop_assert_eq!(settlement.history, allotments.history + settlement.yielded.iter().sum::<u64>());
            prop_assert_eq!(settlement.history + used.iter().sum::<u64>(), allotments.available);
        }
    }
}
