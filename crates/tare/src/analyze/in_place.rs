//! JSON as the agent writes it, read where it stands.
//!
//! Without spaces, escapes, exponents, signs and `null`: what has any of them is left to the general parser, and so is
//! everything that is wrong, which then says what. What is read here is what that parser reads, to the last bit; digits
//! are taken eight at a time, because nearly all of a report are numbers of seventeen.
//! What it cannot see: whether a field is missing or named twice; whoever asks for the fields knows.

/// The most digits of which every number fits into 64 bits.
const MOST_DIGITS: u32 = 19;

/// Text that is being read. Everything gives `None` where the general parser is to be asked.
pub(super) struct InPlace<'a> {
    rest: &'a [u8],
}

impl<'a> InPlace<'a> {
    /// The whole of `text`, read by `take`.
    pub(super) fn all<T>(text: &'a [u8], take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut place = Self { rest: text };
        let taken = take(&mut place)?;
        place.rest.is_empty().then_some(taken)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.next_is(byte).then_some(())
    }

    /// Whether this byte comes next; then it is passed.
    fn next_is(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The elements between `open` and `close`.
    fn list(
        &mut self,
        [open, close]: [u8; 2],
        mut element: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(open)?;
        if self.next_is(close) {
            return Some(());
        }
        loop {
            element(self)?;
            if !self.next_is(b',') {
                return self.expect(close);
            }
        }
    }

    /// An array, element by element.
    pub(super) fn array(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(*b"[]", element)
    }

    /// An object, field by field: `field` is given the name and reads the value.
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.list(*b"{}", |place| {
            let name = place.text()?;
            place.expect(b':')?;
            field(place, name)
        })
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let (text, rest) = self.rest.split_at(self.rest.iter().position(ends)?);
        self.rest = rest;
        self.expect(b'"')?;
        std::str::from_utf8(text).ok()
    }

    pub(super) fn truth(&mut self) -> Option<bool> {
        for (word, value) in [(&b"true"[..], true), (b"false", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Some(value);
            }
        }
        None
    }

    /// A whole number.
    pub(super) fn whole(&mut self) -> Option<u64> {
        let (value, count) = self.digits((0, 0))?;
        let is_number = count > 0 && !matches!(self.rest.first(), Some(b'.' | b'e' | b'E'));
        is_number.then_some(value)
    }

    /// A number, as `serde_json` reads it: all digits as one whole number, divided by a power of ten.
    pub(super) fn number(&mut self) -> Option<f64> {
        if let Some((value, length)) = number_of_a_time(self.rest) {
            self.rest = &self.rest[length..];
            return Some(value);
        }
        let (whole, before) = self.digits((0, 0))?;
        if before == 0 {
            return None;
        }
        if !self.next_is(b'.') {
            let is_over = !matches!(self.rest.first(), Some(b'e' | b'E'));
            return is_over.then_some(whole as f64);
        }
        let (all, count) = self.digits((whole, before))?;
        let is_over = !matches!(self.rest.first(), Some(b'e' | b'E'));
        let after = (count - before) as usize;
        (after > 0 && is_over).then(|| all as f64 / POWERS[after])
    }

    /// The digits that come next, put behind the `count` digits of `value`. No number begins with a 0 that more digits
    /// follow, but what comes after a point may.
    fn digits(&mut self, (mut value, mut count): (u64, u32)) -> Option<(u64, u32)> {
        let is_first = count == 0;
        let begins_with_0 = self.rest.first() == Some(&b'0');
        loop {
            let (eight, n) = next_digits(self.rest);
            count += n;
            if count > MOST_DIGITS {
                return None;
            }
            value = value * WHOLE_POWERS[n as usize] + eight;
            self.rest = &self.rest[n as usize..];
            if n < 8 {
                let is_sound = !(is_first && begins_with_0 && count > 1);
                return is_sound.then_some((value, count));
            }
        }
    }
}

/// The commonest number and its length: one to seven digits that begin with no 0, a point, and up to fifteen more, of
/// which nineteen together at most. The same as by [`InPlace::digits`], without asking after each eight.
fn number_of_a_time(text: &[u8]) -> Option<(f64, usize)> {
    let (whole, before) = next_digits(text);
    let rest = text.get(before as usize..)?.strip_prefix(b".")?;
    if !(1..8).contains(&before) || text[0] == b'0' {
        return None;
    }
    let (first, n_first) = next_digits(rest);
    let (all, after) = if n_first < 8 {
        (whole * WHOLE_POWERS[n_first as usize] + first, n_first)
    } else {
        let (second, n_second) = next_digits(&rest[8..]);
        if n_second == 8 || before + n_second > MOST_DIGITS - 8 {
            return None;
        }
        let eight = whole * WHOLE_POWERS[8] + first;
        (
            eight * WHOLE_POWERS[n_second as usize] + second,
            8 + n_second,
        )
    };
    let is_over = !matches!(rest.get(after as usize), Some(b'e' | b'E'));
    let length = before as usize + 1 + after as usize;
    (after > 0 && is_over).then(|| (all as f64 / POWERS[after as usize], length))
}

/// The same byte eight times, by multiplication.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Up to eight digits at the beginning of `text` as a number, and how many there are.
#[inline]
fn next_digits(text: &[u8]) -> (u64, u32) {
    let mut bytes = [0; 8];
    match text.first_chunk::<8>() {
        Some(eight) => bytes = *eight,
        None => bytes[..text.len()].copy_from_slice(text),
    }
    let all = u64::from_le_bytes(bytes);
    // A digit's high half is 3, and still is with 6 added: the other bytes have a bit left.
    let other = (all ^ (0x30 * ONES)) | ((all.wrapping_add(0x06 * ONES)) ^ (0x30 * ONES));
    let n = (other & (0xf0 * ONES)).trailing_zeros() / 8;
    if n == 0 {
        return (0, 0);
    }
    // The first digit counts most: they move to the end, behind zeroes.
    let digits = (all & (0x0f * ONES)) << (64 - 8 * n);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    (eight, n)
}

const WHOLE_POWERS: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

/// Each is a number without rounding.
const POWERS: [f64; 20] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Option<f64> {
        InPlace::all(text.as_bytes(), InPlace::number)
    }

    /// What the general parser says, by its bits.
    fn general(text: &str) -> Option<u64> {
        serde_json::from_str::<f64>(text).ok().map(f64::to_bits)
    }

    #[test]
    fn a_number_is_the_general_parsers_or_left_to_it() {
        for text in [
            "0",
            "7",
            "10",
            "0.5",
            "0.05",
            "00",
            "01",
            "1.",
            ".5",
            "-1",
            "1e3",
            "1.5e3",
            "1.5E-3",
            "1234567",
            "12345678",
            "123456789",
            "12345678.12345678",
            "9007199254740993",
            "9999999999999999999",
            "18446744073709551615",
            "99999999999999999999",
            "0.1234567890123456789",
            "1740.2578068264343",
            "1/2",
            "1:2",
            "1x",
            "",
            "1 ",
            "0.00000000000000001",
            "3:",
            "3/",
            "300000000000000000000.5",
        ] {
            if let Some(value) = number(text) {
                assert_eq!(Some(value.to_bits()), general(text), "{text}");
            }
            if let Some(value) = InPlace::all(text.as_bytes(), InPlace::whole) {
                assert_eq!(
                    Ok(value),
                    serde_json::from_str(text).map_err(drop),
                    "{text}"
                );
            }
        }
        for text in [
            "0",
            "0.5",
            "12345678.25",
            "1740.2578068264343",
            "9007199254740993",
        ] {
            assert!(number(text).is_some(), "{text}");
        }
        for text in [
            "00", "01", "1.", ".5", "1e3", "1.5e3", "", "1 ", "1/2", "3:",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn texts_arrays_and_objects_are_read_and_what_is_unusual_is_not() {
        let read = |text: &str| {
            let mut found = Vec::new();
            InPlace::all(text.as_bytes(), |place| {
                place.object(|place, name| {
                    let mut values = Vec::new();
                    place.array(|place| {
                        values.push(place.whole()?);
                        Some(())
                    })?;
                    found.push((name.to_owned(), values));
                    Some(())
                })
            })
            .map(|()| found)
        };
        let found = read(r#"{"a":[],"é":[1,23]}"#).unwrap();
        assert_eq!(
            found,
            [("a".to_owned(), vec![]), ("é".to_owned(), vec![1, 23])]
        );
        assert_eq!(read("{}"), Some(vec![]));
        for text in [
            r#"{"a":[]} "#,
            r#"{ "a":[]}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[1]"#,
            r#"{"\u0061":[]}"#,
            "{\"a\nb\":[]}",
            r#"{"a":[1.0]}"#,
            r#"{"a":[1e0]}"#,
            r#"{"a":[],}"#,
            r#"{"a"}"#,
            "",
            "[]",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(
            InPlace::all(b"\"\xff\"", |place| place.text().map(drop)),
            None
        );
        assert_eq!(InPlace::all(b"false", InPlace::truth), Some(false));
        assert_eq!(InPlace::all(b"truth", InPlace::truth), None);
    }

    proptest! {
        #[test]
        fn every_number_that_is_written_is_read_as_the_general_parser_reads_it(bits in any::<u64>()) {
            let value = f64::from_bits(bits & !(1 << 63));
            prop_assume!(value.is_finite());
            let text = serde_json::to_string(&value).unwrap();
            if let Some(found) = number(&text) {
                prop_assert_eq!(Some(found.to_bits()), general(&text), "{}", text);
            }
        }

        #[test]
        fn numbers_of_times_are_read_here(value in 1e-3..1e12f64, whole in any::<u32>()) {
            for text in [serde_json::to_string(&value).unwrap(), whole.to_string()] {
                prop_assert_eq!(number(&text).map(f64::to_bits), general(&text), "{}", text);
            }
        }
    }
}
