//! The windows of secrets in one reading, and a quick way to say that the last symbols are none of them.

/// How many symbols are compared. Each run of this many symbols of a secret is found by itself.
pub(super) const WINDOW: usize = 16;

/// No window is shorter. A secret of eight characters has fewer where blanks and
/// backslashes do not count.
pub(super) const SHORTEST: usize = 6;

/// The last symbols of a reading, one a byte, the latest lowest.
pub(super) type Recent = u128;

/// What the last symbols look like where a secret is.
#[derive(Default)]
pub(super) struct Table {
    /// Sorted by the last [`SHORTEST`] symbols.
    windows: Vec<(Recent, u8)>,
    /// A bit for each hash of those symbols that occurs.
    marks: Vec<u64>,
    shift: u32,
}

impl Table {
    /// The table of these forms. One that is too short to be told from innocent text is left out.
    pub(super) fn of(forms: &[Vec<u8>]) -> Self {
        let mut windows: Vec<(Recent, u8)> = Vec::new();
        for form in forms.iter().filter(|form| form.len() >= SHORTEST) {
            let length = form.len().min(WINDOW);
            windows.extend(form.windows(length).map(|window| (pack(window), length as u8)));
        }
        windows.sort_unstable_by_key(|&(window, length)| (last(window), window, length));
        windows.dedup();
        if windows.is_empty() {
            return Self::default();
        }
        // One bit in sixteen is set, so almost every position of innocent text costs one look.
        let bits = (windows.len() * 16).next_power_of_two().max(64);
        let shift = 64 - bits.trailing_zeros();
        let mut marks = vec![0; bits / 64];
        for &(window, _) in &windows {
            let mark = hash(last(window), shift);
            marks[mark / 64] |= 1 << (mark % 64);
        }
        Self { windows, marks, shift }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// How many of the last symbols are a secret's: the most, or 0. `count` of them are there.
    #[inline]
    pub(super) fn longest(&self, recent: Recent, count: usize) -> usize {
        if count < SHORTEST || self.windows.is_empty() {
            return 0;
        }
        let mark = hash(last(recent), self.shift);
        if self.marks[mark / 64] >> (mark % 64) & 1 == 0 { 0 } else { self.look_up(recent, count) }
    }

    fn look_up(&self, recent: Recent, count: usize) -> usize {
        let from = self.windows.partition_point(|&(window, _)| last(window) < last(recent));
        let same = self.windows[from..].iter().take_while(|&&(window, _)| last(window) == last(recent));
        let matching = same.filter(|&&(window, length)| {
            usize::from(length) <= count && (window ^ recent) & mask(usize::from(length)) == 0
        });
        matching.map(|&(_, length)| usize::from(length)).max().unwrap_or(0)
    }
}

fn pack(window: &[u8]) -> Recent {
    window.iter().fold(0, |packed, &symbol| packed << 8 | Recent::from(symbol))
}

#[expect(clippy::cast_possible_truncation, reason = "the lowest symbols are what is asked for")]
fn last(recent: Recent) -> u64 {
    recent as u64 & mask(SHORTEST) as u64
}

fn mask(length: usize) -> Recent {
    if length >= WINDOW { Recent::MAX } else { (1 << (8 * length)) - 1 }
}

#[inline]
fn hash(last: u64, shift: u32) -> usize {
    (last.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}
