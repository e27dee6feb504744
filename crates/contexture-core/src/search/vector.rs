//! Vectors of texts: what they are compared by, and the nearest of many.

/// The most numbers of a vector.
const MAX_NUMBERS: usize = 4_096;

/// The vector that a model gave a text. Only its direction is kept, in numbers from -127 to 127.
///
/// ```
/// use contexture_core::search::TextVector;
///
/// let [one, same, other] =
///     [[3.0, 4.0], [0.3, 0.4], [-4.0, 3.0]].map(|numbers| TextVector::new("m", &numbers).expect("a direction"));
/// assert!(one.cosine(&same).is_some_and(|cosine| cosine > 0.999));
/// assert!(one.cosine(&other).is_some_and(|cosine| cosine.abs() < 0.01));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextVector {
    model: String,
    numbers: Vec<u8>,
}

impl TextVector {
    /// The vector that a model gave a text; `None` if it has no direction, or too many numbers.
    pub fn new(model: impl Into<String>, numbers: &[f32]) -> Option<Self> {
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let is_usable = numbers.len() <= MAX_NUMBERS && largest.is_normal() && numbers.iter().all(|it| it.is_finite());
        is_usable.then(|| {
            let byte = |number: &f32| (number / largest * 127.0).round() as i8 as u8;
            Self { model: model.into(), numbers: numbers.iter().map(byte).collect() }
        })
    }

    /// In the place of the vector of a text that gets none: it is near nothing.
    pub fn none(model: impl Into<String>) -> Self {
        Self { model: model.into(), numbers: Vec::new() }
    }

    /// A vector that an index has kept, by what [`as_bytes`](Self::as_bytes) returned.
    pub fn from_bytes(model: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { model: model.into(), numbers: bytes }
    }

    /// The model that it is of. Vectors of different models have nothing to do with each other.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// One byte for each number.
    pub fn as_bytes(&self) -> &[u8] {
        &self.numbers
    }

    /// The cosine of the angle between two vectors; `None` if they cannot be compared.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        if self.model == other.model { cosine(&self.numbers, &other.numbers) } else { None }
    }
}

/// The cosine of the angle between two vectors of one model, as bytes; `None` if they cannot be compared.
fn cosine(one: &[u8], other: &[u8]) -> Option<f64> {
    if one.len() != other.len() {
        return None;
    }
    let (mut dot, mut first, mut second) = (0_i32, 0_i32, 0_i32);
    // At most 4 096 times 127², which fits.
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (i32::from(*one as i8), i32::from(*other as i8));
        dot += one * other;
        first += one * one;
        second += other * other;
    }
    let lengths = (f64::from(first) * f64::from(second)).sqrt();
    (lengths > 0.0).then(|| f64::from(dot) / lengths)
}

/// Compares the vectors of a scope with one, for an index: it keeps the nearest, and the mean of all.
#[derive(Debug)]
pub struct Nearest<'a, D> {
    vector: &'a TextVector,
    limit: usize,
    found: Vec<(D, f64)>,
    sum: f64,
    compared: u64,
}

impl<'a, D> Nearest<'a, D> {
    /// Looks for at most `limit` documents near a vector.
    pub fn new(vector: &'a TextVector, limit: usize) -> Self {
        Self { vector, limit, found: Vec::new(), sum: 0.0, compared: 0 }
    }

    /// Compares a document's vector, which is of the same model; what cannot be compared is left out.
    pub fn add(&mut self, document: D, numbers: &[u8]) {
        let Some(cosine) = cosine(&self.vector.numbers, numbers) else { return };
        self.sum += cosine;
        self.compared += 1;
        self.found.push((document, cosine));
        // The rest goes from time to time, so that a large scope takes no more room.
        if self.found.len() >= self.limit.saturating_mul(4).max(1_024) {
            self.cut();
        }
    }

    /// The nearest documents with their cosines, nearest first; and the mean of all cosines, with how many there were.
    pub fn end(mut self) -> (Vec<(D, f64)>, f64, u64) {
        self.cut();
        let mean = if self.compared == 0 { 0.0 } else { self.sum / self.compared as f64 };
        (self.found, mean, self.compared)
    }

    fn cut(&mut self) {
        self.found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        self.found.truncate(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn vectors_keep_their_direction(numbers in proptest::collection::vec(-9.0_f32..9.0, 2..64)) {
            prop_assume!(numbers.iter().any(|number| number.abs() > 0.5));
            let kept = TextVector::new("m", &numbers).unwrap();
            let exact = |number: &f32| f64::from(*number);
            let dot: f64 = kept.as_bytes().iter().zip(&numbers).map(|(kept, it)| f64::from(*kept as i8) * exact(it)).sum();
            let length = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|it| it * it).sum::<f64>().sqrt();
            let lengths = length(&mut numbers.iter().map(exact)) * length(&mut kept.as_bytes().iter().map(|it| f64::from(*it as i8)));
            prop_assert!(dot / lengths > 0.99);
        }
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        for numbers in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0], &[1.0; MAX_NUMBERS + 1]] {
            assert_eq!(TextVector::new("m", numbers), None);
        }
        let vector = |model: &str, numbers: &[f32]| TextVector::new(model, numbers).unwrap();
        assert_eq!(vector("m", &[1.0]).cosine(&vector("m", &[1.0, 2.0])), None);
        assert_eq!(vector("m", &[1.0]).cosine(&vector("n", &[1.0])), None);
        assert_eq!(vector("m", &[1.0]).cosine(&TextVector::none("m")), None);
        assert_eq!(TextVector::none("m").cosine(&TextVector::none("m")), None);
    }

    #[test]
    fn the_nearest_of_many_are_kept_with_the_mean_of_all() {
        let wanted = TextVector::new("m", &[1.0, 0.0]).unwrap();
        let mut nearest = Nearest::new(&wanted, 2);
        for document in 0..5_000_u16 {
            let turned = (f32::from(document) / 5_000.0 * std::f32::consts::PI).sin_cos();
            nearest.add(document, TextVector::new("m", &[turned.1, turned.0]).unwrap().as_bytes());
        }
        nearest.add(9_999, &[1, 2, 3]);
        let (found, mean, compared) = nearest.end();
        assert_eq!(compared, 5_000, "one of another length is not compared");
        assert!(found.len() == 2 && found.iter().all(|(document, cosine)| *document < 30 && *cosine > 0.999));
        assert!(mean.abs() < 0.01, "{mean}");
    }
}
