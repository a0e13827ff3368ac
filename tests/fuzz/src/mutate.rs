//! Changes seeds at random. The same number gives the same inputs, so what fails once fails again.

use std::fs;
use std::path::Path;

use crate::Target;

/// No input is longer.
const LONGEST: usize = 16 << 10;

/// Makes inputs of seeds and words.
#[derive(Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    state: u64,
}

impl Mutator {
    /// A mutator of a target's seeds.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub fn of(target: &Target, number: u64) -> std::io::Result<Self> {
        let mut paths = fs::read_dir(target.seeds())?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        let seeds = paths.iter().map(fs::read).collect::<Result<_, _>>()?;
        Ok(Self { seeds, words: words(&target.words())?, state: number.wrapping_mul(2).wrapping_add(1) })
    }

    /// The seeds as they are.
    #[must_use]
    pub fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let which = self.below(self.seeds.len());
        let mut input = self.seeds[which].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + self.below(32)).min(input.len());
        match self.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.random() as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            4 => input.truncate(at),
            5 => {
                let byte = *b"\0\r\n :{}[]\"\\\xff9-%".get(self.below(16)).unwrap_or(&b'x');
                input.insert(at, byte);
            }
            6 => {
                let other = self.below(self.seeds.len());
                let from = self.below(self.seeds[other].len() + 1);
                let piece = self.seeds[other][from..].to_vec();
                input.splice(at.., piece);
            }
            7 => {
                // Whole lines in another order.
                let mut lines: Vec<Vec<u8>> = input.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
                let (one, two) = (self.below(lines.len()), self.below(lines.len()));
                lines.swap(one, two);
                *input = lines.join(&b'\n');
            }
            _ if !self.words.is_empty() => {
                let word = self.below(self.words.len());
                let range = if self.below(2) == 0 { at..at } else { at..end };
                let word = self.words[word].clone();
                input.splice(range, word);
            }
            _ => {}
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random() % limit.max(1) as u64) as usize
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The words of a dictionary: `"word"`, with `\"`, `\\` and `\xNN` inside.
fn words(path: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let text = fs::read_to_string(path)?;
    let quoted = text.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix('"'));
    Ok(quoted.map(unescaped).collect())
}

fn unescaped(text: &str) -> Vec<u8> {
    let (mut word, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let byte = after.get(1..3).filter(|_| first == b'\\' && after[0] == b'x');
        let byte = byte.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match (first, byte) {
            (_, Some(byte)) => {
                word.push(byte);
                rest = &after[3..];
            }
            (b'\\', None) if !after.is_empty() => {
                word.push(after[0]);
                rest = &after[1..];
            }
            _ => {
                word.push(first);
                rest = after;
            }
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_libfuzzer_reads_them() {
        assert_eq!(unescaped(r#"a\"b\\\x0d\x0A"#), b"a\"b\\\r\n");
    }

    #[test]
    fn the_same_number_makes_the_same_inputs() {
        let target = Target::named("host_parser").unwrap();
        let inputs = |number| {
            let mut mutator = Mutator::of(&target, number).unwrap();
            (0..50).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }
}
