//! Parallel work.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies a function to every item on all processors, and returns the results in the order of the items.
///
/// At most one item per processor is processed at a time, which limits the memory use.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..processors.min(items.len()) {
            scope.spawn(|| {
                while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < items.len())
                {
                    let result = work(&items[index]);
                    *results[index].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result);
                }
            });
        }
    });
    let take = |slot: Mutex<Option<R>>| slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    results.into_iter().map(|slot| take(slot).expect("every item was worked on before the scope ended")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        assert_eq!(in_parallel(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(in_parallel(&[] as &[u8], |item| *item), Vec::<u8>::new());
    }
}
