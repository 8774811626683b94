//! The shared memory page over which workers pass the turn.
//!
//! Its words: the host's key; the number and the phase of the last slice, and how many operations fill a slice, which
//! only the holder of the turn writes; the phase of each worker; and a bell for each worker, the word on which it
//! sleeps. To pass the turn, a worker writes the next slice's number into one bell and wakes its one sleeper
//! (futex(2)), so that a hand-over takes one wake-up however many arms there are.
//! The host reads and writes the same page through its file, between blocks only.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tare_model::Failure;
use tare_model::turns::{
    MOST_PLACES, PAGE_BYTES, PAGE_KEY, PAGE_PHASES, TurnPage, Turns, next_turn,
};

use crate::meter::ProbeError;

/// Longest sleep of a waiting worker before it checks whether a wake-up was lost to a signal.
const LOOK: Duration = Duration::from_millis(250);
/// The factor by which a worker's number of operations may differ from that of others to be replaced by it.
const ALIKE: u64 = 3;
/// Value of a bell when all are done.
const OVER: u32 = u32::MAX;

/// The memory layout of the page. All zeroes, except for the key, when a block begins.
#[repr(C)]
struct Words {
    key: AtomicU64,
    /// The number of the last slice, plus one; 0 before the first.
    last: AtomicU32,
    /// The phase of the last slice.
    phase: AtomicU32,
    /// The number of operations in a slice of the metric below.
    batch: AtomicU64,
    /// The number of the metric, from 1; 0 before the first.
    metric: AtomicU32,
    unused: [AtomicU32; 9],
    /// The phase of each place.
    phases: [AtomicU32; MOST_PLACES],
    /// The number of the slice last given to each place, plus one.
    bells: [AtomicU32; MOST_PLACES],
}

const _: () = assert!(std::mem::offset_of!(Words, key) == PAGE_KEY);
const _: () = assert!(std::mem::offset_of!(Words, phases) == PAGE_PHASES);
const _: () = assert!(size_of::<Words>() <= PAGE_BYTES);

/// The mapped page.
#[derive(Debug)]
pub(super) struct Page {
    words: NonNull<Words>,
    /// The value of this worker's bell when it was last woken.
    heard: AtomicU32,
}

impl Page {
    /// Maps the page and checks that it is the host's.
    pub(super) fn open(page: &TurnPage) -> Result<Self, ProbeError> {
        let failed = |error: &std::io::Error| {
            ProbeError::Failed(Failure::Probe(format!(
                "the page for the turns cannot be used: {error}"
            )))
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&page.path)
            .map_err(|error| failed(&error))?;
        let length = file.metadata().map_err(|error| failed(&error))?.len();
        if length < PAGE_BYTES as u64 {
            return Err(another());
        }
        // SAFETY: a new mapping at an address of the kernel's choice; the file is open and as long as the mapping.
        let mapped = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(failed(&std::io::Error::last_os_error()));
        }
        let Some(words) = NonNull::new(mapped.cast::<Words>()) else {
            return Err(another());
        };
        let opened = Self {
            words,
            heard: AtomicU32::new(0),
        };
        if opened.words().key.load(Ordering::SeqCst) == page.key {
            return Ok(opened);
        }
        Err(another())
    }

    fn words(&self) -> &Words {
        // SAFETY: the mapping is as long as `Words`, aligned to a page, lives as long as `self`, and every field is
        // atomic, so that other processes may write while this one reads.
        unsafe { self.words.as_ref() }
    }

    /// Returns the number of operations in a slice: that of the worker that found it last for this metric, or its own
    /// if that is far from it; only the holder of the turn may call this.
    pub(super) fn agreed(&self, metric: u32, own: u64) -> u64 {
        let words = self.words();
        let known = words.batch.load(Ordering::SeqCst);
        let is_same = words.metric.load(Ordering::SeqCst) == metric;
        if is_same && own <= known.saturating_mul(ALIKE) && known <= own.saturating_mul(ALIKE) {
            return known;
        }
        words.batch.store(own, Ordering::SeqCst);
        words.metric.store(metric, Ordering::SeqCst);
        own
    }

    /// Publishes this worker's phase.
    pub(super) fn set_phase(&self, place: u32, phase: u32) {
        self.words().phases[place as usize].store(phase, Ordering::SeqCst);
    }

    fn phases(&self, turns: &Turns) -> Vec<u32> {
        self.words().phases[..turns.rows[0].len()]
            .iter()
            .map(|phase| phase.load(Ordering::SeqCst))
            .collect()
    }

    /// Passes the turn to the next worker; only its holder may call this.
    pub(super) fn pass_on(&self, turns: &Turns) {
        let words = self.words();
        let phases = self.phases(turns);
        let last = words.last.load(Ordering::SeqCst).checked_sub(1);
        let last_phase = words.phase.load(Ordering::SeqCst);
        match next_turn(&turns.rows, &phases, last, last_phase) {
            Some((number, place)) => {
                words.last.store(number + 1, Ordering::SeqCst);
                words.phase.store(phases[place as usize], Ordering::SeqCst);
                self.ring(place as usize, number + 1);
            }
            None => (0..phases.len()).for_each(|place| self.ring(place, OVER)),
        }
    }

    fn ring(&self, place: usize, value: u32) {
        let bell = &self.words().bells[place];
        bell.store(value, Ordering::SeqCst);
        // SAFETY: the bell is a live, aligned word; FUTEX_WAKE takes a number of sleepers and touches nothing else.
        unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, 1) };
    }

    /// Waits for this worker's turn.
    pub(super) fn wait(&self, turns: &Turns) -> Result<(), ProbeError> {
        let heard = self.listen(turns)?;
        self.heard.store(heard, Ordering::Relaxed);
        if heard == OVER {
            return Err(ProbeError::Failed(Failure::Lost(
                "the turns were over before its own".to_owned(),
            )));
        }
        Ok(())
    }

    /// Waits until all are done, or for the patience if a worker is gone without notice.
    pub(super) fn wait_for_the_end(&self, turns: &Turns) {
        let _ = self.listen(turns);
    }

    /// Sleeps until the bell has a new value.
    fn listen(&self, turns: &Turns) -> Result<u32, ProbeError> {
        let bell = &self.words().bells[turns.place as usize];
        let heard = self.heard.load(Ordering::Relaxed);
        let begin = Instant::now();
        let patience = Duration::from_nanos(turns.patience_ns);
        let look = libc::timespec {
            tv_sec: 0,
            tv_nsec: LOOK.subsec_nanos().cast_signed().into(),
        };
        loop {
            let now = bell.load(Ordering::SeqCst);
            if now != heard {
                return Ok(now);
            }
            if begin.elapsed() > patience {
                return Err(self.kept_turn(turns));
            }
            // SAFETY: the bell is a live, aligned word and `look` a live relative time; FUTEX_WAIT reads both.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    bell.as_ptr(),
                    libc::FUTEX_WAIT,
                    heard,
                    &raw const look,
                );
            }
        }
    }

    fn kept_turn(&self, turns: &Turns) -> ProbeError {
        let last = self.words().last.load(Ordering::SeqCst);
        let places = u32::try_from(turns.rows[0].len()).unwrap_or(u32::MAX);
        let holder = last.checked_sub(1).map(|number| {
            let row = &turns.rows[(number / places) as usize % turns.rows.len()];
            row[(number % places) as usize]
        });
        let who = holder.map_or_else(
            || "no worker began".to_owned(),
            |place| format!("the worker at place {place} kept its turn"),
        );
        ProbeError::Failed(Failure::Lost(format!(
            "{who} for more than {} s",
            turns.patience_ns / 1_000_000_000
        )))
    }

    /// Takes the very first turn, if it is this worker's; call it once all are prepared.
    pub(super) fn begin(&self, turns: &Turns) {
        let words = self.words();
        let phases = self.phases(turns);
        let first = next_turn(&turns.rows, &phases, None, 0);
        // Read after the phases: a worker with a turn continues only after this was written.
        let has_begun = words.last.load(Ordering::SeqCst) != 0;
        if !has_begun && first.is_some_and(|(_, place)| place == turns.place) {
            self.pass_on(turns);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped in `open` with this length, and not borrowed any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), PAGE_BYTES) };
    }
}

fn another() -> ProbeError {
    ProbeError::Failed(Failure::Probe(
        "the page for the turns is not the one that the host made".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    use tare_model::turns::DONE;

    use super::*;

    /// A page for `places`, removed at the end of the test.
    struct TestPage(PathBuf);

    impl TestPage {
        fn new(test: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("tare-page-{}-{test}", std::process::id()));
            let mut bytes = vec![0; PAGE_BYTES];
            bytes[PAGE_KEY..PAGE_KEY + 8].copy_from_slice(&5u64.to_ne_bytes());
            std::fs::write(&path, bytes).unwrap();
            Self(path)
        }

        fn turns(&self, place: u32) -> Turns {
            Turns {
                place,
                rows: vec![vec![0, 1, 2], vec![2, 0, 1], vec![1, 2, 0]],
                stages: None,
                page: Some(TurnPage {
                    path: self.0.display().to_string(),
                    key: 5,
                }),
                check: false,
                patience_ns: 20_000_000_000,
            }
        }
    }

    impl Drop for TestPage {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn turns_are_exclusive_and_follow_row_order() {
        let made = TestPage::new("order");
        let (busy, order) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let ready = std::sync::Barrier::new(3);
        std::thread::scope(|scope| {
            for place in 0..3 {
                let turns = made.turns(place);
                let (busy, order, ready) = (&busy, &order, &ready);
                scope.spawn(move || {
                    let page = Page::open(turns.page.as_ref().unwrap()).unwrap();
                    page.set_phase(place, 1);
                    ready.wait();
                    page.begin(&turns);
                    // Place 1 has nothing in the second phase.
                    for (phase, slices) in [(1, 30), (2, if place == 1 { 0 } else { 10 })] {
                        page.set_phase(place, phase);
                        for slice in 0..slices {
                            if phase > 1 || slice > 0 {
                                page.pass_on(&turns);
                            }
                            page.wait(&turns).unwrap();
                            assert!(!busy.swap(true, Ordering::SeqCst), "two at a time");
                            order.lock().unwrap().push((phase, place));
                            busy.store(false, Ordering::SeqCst);
                        }
                    }
                    page.set_phase(place, DONE);
                    page.pass_on(&turns);
                    page.wait_for_the_end(&turns);
                });
            }
        });
        let order = order.into_inner().unwrap();
        let of = |wanted: u32| -> Vec<u32> {
            let in_phase = order.iter().filter(|(phase, _)| *phase == wanted);
            in_phase.map(|(_, place)| *place).collect()
        };
        assert_eq!(of(1)[..9], [0, 1, 2, 2, 0, 1, 1, 2, 0]);
        assert_eq!(of(1).len(), 90);
        let second = of(2);
        assert_eq!(second.len(), 20);
        assert!(second.iter().all(|place| *place != 1));
        // No worker begins the second phase before all have ended the first.
        assert!(order.is_sorted_by_key(|(phase, _)| *phase));
    }

    #[test]
    fn workers_agree_on_operations_of_a_metric_unless_far_apart() {
        let page = TestPage::new("agreed");
        let [one, other] = [0, 1].map(|place| {
            let turns = page.turns(place);
            Page::open(turns.page.as_ref().unwrap()).unwrap()
        });
        assert_eq!(one.agreed(1, 1_000), 1_000);
        assert_eq!(other.agreed(1, 1_400), 1_000);
        assert_eq!(other.agreed(1, 400), 1_000);
        assert_eq!(other.agreed(1, 100), 100);
        assert_eq!(one.agreed(2, 120), 120);
    }
}
