//! Changes inputs a little, always in the same way from the same seed.

/// Makes new inputs out of those of a corpus: bytes flipped, cut out, repeated, and pieces of others put in.
#[derive(Debug)]
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    state: u64,
}

const LENGTH_MAX: usize = 16 << 10;
/// Bytes that mean something to the formats that are read.
const TELLING: &[u8] = b"{}[]\",:;=\\-&*!|>#%@'~<?\r\n \t0e.\xff\0";

/// Seeds that are tried one after the other.
const SEEDS: u64 = 4;

/// Tries a property on `rounds` mutations of its corpus for each of a few seeds, from `seed` on.
///
/// `ANY_INPUT_SEED` and `ANY_INPUT_ROUNDS` in the environment take the place of the two.
///
/// # Panics
/// If the property does not hold; the input is in the message.
pub fn try_mutations(property: &str, seed: u64, rounds: u64, holds: fn(&[u8])) {
    let corpus = crate::corpus(property);
    let first = from_environment("ANY_INPUT_SEED").unwrap_or(seed);
    let rounds = from_environment("ANY_INPUT_ROUNDS").unwrap_or(rounds);
    for seed in first..first.saturating_add(SEEDS) {
        let mut mutator = Mutator::new(&corpus, seed);
        for round in 0..rounds {
            let input = mutator.next_input();
            let outcome = std::panic::catch_unwind(|| holds(&input));
            assert!(outcome.is_ok(), "seed {seed}, round {round}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}

fn from_environment(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text:?}")))
}

// === impl Mutator ===

impl<'a> Mutator<'a> {
    /// A mutator of inputs; none may be missing. The same seed gives the same inputs.
    pub fn new(corpus: &'a [Vec<u8>], seed: u64) -> Self {
        // Seeds that follow each other start far from each other. A state of zero would stay zero.
        Self { corpus, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1) }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.pick().to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input.truncate(LENGTH_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let start = self.below(input.len() + 1);
        let end = start + self.below(input.len() - start + 1).min(64);
        match self.below(5) {
            0 => drop(input.drain(start..end)),
            1 => {
                let byte = TELLING[self.below(TELLING.len())];
                input.insert(start, byte);
            }
            2 => {
                let piece = input[start..end].to_vec();
                let times = self.below(8) + 1;
                input.splice(start..start, piece.repeat(times));
            }
            3 => {
                let other = self.pick();
                let from = self.below(other.len() + 1);
                let to = from + self.below(other.len() - from + 1).min(256);
                input.splice(start..end, other[from..to].iter().copied());
            }
            _ => {
                let flip = 1 << self.below(8);
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= flip;
                }
            }
        }
    }

    fn pick(&mut self) -> &'a [u8] {
        let index = self.below(self.corpus.len());
        &self.corpus[index]
    }

    /// A number below `limit`, from a generator of the xorshift family.
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.state % limit).unwrap_or(0)
    }
}
