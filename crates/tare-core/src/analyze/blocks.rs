//! A map from block number to value, ordered by block.
//!
//! A list instead of a tree: blocks nearly always arrive in order, and half-empty nodes would take a large part of
//! the memory of a long run. A block without an entry was not tried or left nothing.

/// One entry per block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocks<T>(Vec<(u32, T)>);

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Blocks<T> {
    /// The index of a block, or where it would be inserted.
    fn place(&self, block: u32) -> Result<usize, usize> {
        match self.0.last() {
            Some((last, _)) if *last < block => Err(self.0.len()),
            Some((last, _)) if *last == block => Ok(self.0.len() - 1),
            _ => {
                // If no block before it is missing, its distance from the first is the difference of their numbers.
                let first = self.0.first().map_or(0, |(first, _)| *first);
                let near = block.wrapping_sub(first) as usize;
                match self.0.get(near) {
                    Some((own, _)) if *own == block => Ok(near),
                    _ => self.0.binary_search_by_key(&block, |(own, _)| *own),
                }
            }
        }
    }

    pub(crate) fn get(&self, block: u32) -> Option<&T> {
        self.place(block).ok().map(|place| &self.0[place].1)
    }

    pub(crate) fn get_mut(&mut self, block: u32) -> Option<&mut T> {
        self.place(block).ok().map(|place| &mut self.0[place].1)
    }

    pub(crate) fn contains(&self, block: u32) -> bool {
        self.place(block).is_ok()
    }

    /// Inserts an entry and returns the previous one, if any.
    pub(crate) fn insert(&mut self, block: u32, value: T) -> Option<T> {
        match self.place(block) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (block, value));
                None
            }
        }
    }

    /// Removes and returns the entries that are `unwanted`.
    pub(crate) fn take_if(&mut self, unwanted: impl Fn(&T) -> bool) -> Vec<(u32, T)> {
        self.0
            .extract_if(.., |(_, value)| unwanted(value))
            .collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.0.iter().map(|(block, value)| (*block, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(block, _)| *block)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_iterate_in_order_regardless_of_insertion() {
        let mut blocks = Blocks::default();
        for (block, is_again) in [
            (5, false),
            (7, false),
            (2, false),
            (9, false),
            (2, true),
            (7, true),
        ] {
            assert_eq!(blocks.insert(block, block * 10).is_some(), is_again);
        }
        assert_eq!(blocks.keys().collect::<Vec<u32>>(), [2, 5, 7, 9]);
        assert_eq!((blocks.get(7), blocks.get(8)), (Some(&70), None));
        *blocks.get_mut(9).unwrap() = 1;
        let taken = blocks.take_if(|value| [50, 70].contains(value));
        assert_eq!(taken, [(5, 50), (7, 70)]);
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [(2, &20), (9, &1)]);
        assert!(blocks.contains(2) && !blocks.contains(5) && !blocks.is_empty());
        blocks.take_if(|_| true);
        assert!(blocks.is_empty());
    }
}
