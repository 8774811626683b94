//! Finds which of many differences cause a slowdown, by removing them in parts.
//!
//! Delta debugging over sets, with intervals in place of a test that fails or passes. A set that is removed is *hot*
//! if a part of the slowdown that is surely above zero and not small goes away with it. A hot set is split, likely
//! members alone first; hot parts are split again, down to single differences.
//!
//! If the whole is hot but no half of it is, either half suffices to keep the command slow. Both are then searched,
//! each while the other is removed, and the result is one set that acts only together. Differences that are slow only
//! together are hot on either side, and both are found.
//! No half counts as cold because nothing was seen: a part that is neither hot nor cold is tried again, and finally
//! left as it is. If parts cannot be tried while the others are cold, the cause is searched in those parts.
//! Pure: it returns what to try and receives the results.
//! Limits: misses a difference whose effect is cancelled by another one that is removed with it.

/// The smallest share of the slowdown that makes a set hot.
pub const LEAST_SHARE: f64 = 0.2;

/// A set is cold if its share is surely below this.
const COLD_BELOW: f64 = 0.5;
/// How often the same parts are tried before they are left undecided.
const TRIES_MOST: u32 = 3;

/// A difference that may cause the slowdown.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its name.
    pub id: String,
    /// How likely it is, from 0 to 1.
    pub likelihood: f64,
}

/// One trial of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// All differences that are removed.
    pub without: Vec<String>,
    /// Those of them that are tested.
    pub part: Vec<String>,
    job: usize,
}

/// The part of the slowdown that went away.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemovedShare {
    /// The lower end of the part that went away.
    pub low: f64,
    /// The share of the slowdown that went away.
    pub share: f64,
    /// The upper end of that share.
    pub high: f64,
}

impl RemovedShare {
    /// Whether enough went away, and surely some.
    pub fn is_hot(self) -> bool {
        self.low > 0.0 && self.share >= LEAST_SHARE
    }

    /// Whether surely too little went away.
    fn is_cold(self) -> bool {
        self.high < COLD_BELOW
    }
}

/// A hot set that is being split.
#[derive(Debug, Clone, PartialEq)]
struct Job {
    /// Members of the set found so far, which stay removed.
    base: Vec<String>,
    /// The group to split.
    group: Vec<Item>,
    /// The groups to split next, which stay removed.
    rest: Vec<Vec<Item>>,
    /// Whether it was tried in more than two parts, none of them hot.
    in_halves: bool,
    /// How often the same parts were tried without a decision.
    tries: u32,
}

/// A running search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    jobs: Vec<Job>,
    found: Vec<Vec<String>>,
    /// Sets that could not be decided.
    stuck: Vec<Job>,
}

impl Search {
    /// A search among these items, which together cause the slowdown.
    pub fn new(mut items: Vec<Item>) -> Self {
        items.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
        let mut search = Self {
            jobs: Vec::new(),
            found: Vec::new(),
            stuck: Vec::new(),
        };
        if !items.is_empty() {
            search.go_on(Job {
                base: Vec::new(),
                group: items,
                rest: Vec::new(),
                in_halves: false,
                tries: 0,
            });
        }
        search
    }

    /// The sets that were found; each causes a part of the slowdown or all of it.
    pub fn found(&self) -> &[Vec<String>] {
        &self.found
    }

    /// The sets that were not separated.
    pub fn open(&self) -> Vec<Vec<String>> {
        let whole = |job: &Job| {
            let group = job.group.iter().map(|item| item.id.clone());
            job.base.iter().cloned().chain(group).collect()
        };
        self.jobs.iter().chain(&self.stuck).map(whole).collect()
    }

    /// Takes up undecided sets again; returns whether there are any.
    pub fn reopen(&mut self) -> bool {
        for mut job in std::mem::take(&mut self.stuck) {
            job.tries = TRIES_MOST - 1;
            // A single one cannot be split.
            if job.group.len() > 1 {
                self.jobs.push(job);
            } else {
                self.stuck.push(job);
            }
        }
        !self.jobs.is_empty()
    }

    /// How often the next trials were already made without a decision.
    pub fn tries(&self) -> u32 {
        self.jobs.iter().map(|job| job.tries).max().unwrap_or(0)
    }

    /// The next trials, at most `room` at once; empty if all is found or if there is no room for two.
    pub fn probes(&self, room: usize) -> Vec<Probe> {
        let mut probes = Vec::new();
        let fitting = self.jobs.len().min(room / 2);
        for (place, job) in self.jobs.iter().take(fitting).enumerate() {
            let most = if job.in_halves { 2 } else { room / fitting };
            let away: Vec<String> = job
                .base
                .iter()
                .cloned()
                .chain(job.rest.iter().flatten().map(|item| item.id.clone()))
                .collect();
            for part in split(&job.group, most.max(2)) {
                let part: Vec<String> = part.into_iter().map(|item| item.id).collect();
                probes.push(Probe {
                    without: away.iter().cloned().chain(part.iter().cloned()).collect(),
                    part,
                    job: place,
                });
            }
        }
        probes
    }

    /// Takes the results of the probes; `None` if one could not be tried or gave too few values.
    pub fn learn(&mut self, results: &[(Probe, Option<RemovedShare>)]) {
        let jobs = std::mem::take(&mut self.jobs);
        for (place, job) in jobs.into_iter().enumerate() {
            let of_job: Vec<&(Probe, Option<RemovedShare>)> = results
                .iter()
                .filter(|(probe, _)| probe.job == place)
                .collect();
            if of_job.is_empty() {
                self.jobs.push(job);
                continue;
            }
            self.learn_of(job, &of_job);
        }
    }

    fn learn_of(&mut self, job: Job, results: &[&(Probe, Option<RemovedShare>)]) {
        let members = |probe: &Probe| -> Vec<Item> {
            let is_in = |item: &&Item| probe.part.contains(&item.id);
            job.group.iter().filter(is_in).cloned().collect()
        };
        let mut hot: Vec<(f64, Vec<Item>)> = results
            .iter()
            .filter_map(|(probe, shown)| {
                let shown = shown.filter(|shown| shown.is_hot())?;
                Some((shown.share, members(probe)))
            })
            .collect();
        hot.sort_by(|a, b| b.0.total_cmp(&a.0));
        if hot.is_empty() {
            return self.learn_nothing(job, results);
        }
        // Within a set that acts only together one path is enough.
        let wanted = if job.rest.is_empty() && job.base.is_empty() {
            hot.len()
        } else {
            1
        };
        for (_, group) in hot.into_iter().take(wanted) {
            self.go_on(Job {
                base: job.base.clone(),
                group,
                rest: job.rest.clone(),
                in_halves: false,
                tries: 0,
            });
        }
    }

    /// Handles a round without a hot part: all are cold, or some were undecided or could not be tried.
    fn learn_nothing(&mut self, mut job: Job, results: &[&(Probe, Option<RemovedShare>)]) {
        let is_open = |shown: &Option<RemovedShare>| shown.is_some_and(|shown| !shown.is_cold());
        let untried: Vec<&String> = results
            .iter()
            .filter(|(_, shown)| shown.is_none())
            .flat_map(|(probe, _)| &probe.part)
            .collect();
        let is_any_open = results.iter().any(|(_, shown)| is_open(shown));
        if untried.is_empty() && !is_any_open {
            return self.none_is_hot(job, results.len());
        }
        // What is surely not in the others is in the parts that could not be tried, if it is in one part.
        if !is_any_open && untried.len() < job.group.len() {
            job.group.retain(|item| untried.contains(&&item.id));
            job.tries = 0;
            if job.group.len() == 1 {
                self.stuck.push(job);
            } else {
                self.jobs.push(job);
            }
            return;
        }
        job.tries += 1;
        let is_over = job.tries >= TRIES_MOST;
        if is_over {
            &mut self.stuck
        } else {
            &mut self.jobs
        }
        .push(job);
    }

    fn none_is_hot(&mut self, mut job: Job, n_parts: usize) {
        if n_parts > 2 {
            job.in_halves = true;
            job.tries = 0;
            self.jobs.push(job);
            return;
        }
        let mut halves = split(&job.group, 2);
        let group = halves.remove(0);
        job.rest.splice(0..0, halves);
        self.go_on(Job {
            group,
            in_halves: false,
            tries: 0,
            ..job
        });
    }

    /// Continues a job: a group of one counts as found, and the next group follows.
    fn go_on(&mut self, mut job: Job) {
        while job.group.len() == 1 {
            job.base.push(job.group[0].id.clone());
            if job.rest.is_empty() {
                self.found.push(job.base);
                return;
            }
            job.group = job.rest.remove(0);
        }
        self.jobs.push(job);
    }
}

/// Splits a group into at most `most`, but at least two, parts of about the same likelihood, so that likely items are
/// alone.
fn split(group: &[Item], most: usize) -> Vec<Vec<Item>> {
    let parts = most.min(group.len()).max(1);
    let whole: f64 = group.iter().map(|item| item.likelihood.max(0.01)).sum();
    let mut split: Vec<Vec<Item>> = vec![Vec::new()];
    let mut so_far = 0.0;
    for (place, item) in group.iter().enumerate() {
        let left = group.len() - place;
        let missing = parts - split.len();
        let current = split.last().map_or(0, Vec::len);
        // Cut where the parts become most equal.
        let half = item.likelihood.max(0.01) / 2.0;
        let is_full = so_far + half >= whole * split.len() as f64 / parts as f64;
        if current > 0 && missing > 0 && (is_full || left <= missing) {
            split.push(Vec::new());
        }
        so_far += item.likelihood.max(0.01);
        split
            .last_mut()
            .expect("there is always one")
            .push(item.clone());
    }
    split
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn items(number: usize) -> Vec<Item> {
        (0..number)
            .map(|place| Item {
                id: format!("d{place:02}"),
                likelihood: 0.1 + 0.02 * (place % 7) as f64,
            })
            .collect()
    }

    /// Searches if `share` of the slowdown goes away without a set; returns what is found, and the number of rounds
    /// and probes.
    fn searched(
        number: usize,
        share: impl Fn(&BTreeSet<&str>) -> f64,
    ) -> (Vec<Vec<String>>, usize, usize) {
        let mut search = Search::new(items(number));
        let (mut rounds, mut tried) = (0, 0);
        loop {
            let probes = search.probes(6);
            if probes.is_empty() {
                let mut found: Vec<Vec<String>> = search.found().to_vec();
                for set in &mut found {
                    set.sort();
                }
                found.sort();
                return (found, rounds, tried);
            }
            rounds += 1;
            tried += probes.len();
            assert!(rounds < 30 && probes.len() <= 6, "{search:?}");
            let results: Vec<(Probe, Option<RemovedShare>)> = probes
                .into_iter()
                .map(|probe| {
                    let without: BTreeSet<&str> =
                        probe.without.iter().map(String::as_str).collect();
                    let share = share(&without);
                    let shown = RemovedShare {
                        low: share - 0.05,
                        share,
                        high: share + 0.05,
                    };
                    (probe, Some(shown))
                })
                .collect();
            search.learn(&results);
        }
    }

    fn set(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn search_finds_one_harmful_of_31_in_three_rounds() {
        for harmful in 0..31 {
            let name = format!("d{harmful:02}");
            let (found, rounds, tried) = searched(31, |without| {
                f64::from(u8::from(without.contains(name.as_str())))
            });
            assert_eq!(found, [vec![name]]);
            assert!(rounds <= 3 && tried <= 15, "{rounds} rounds, {tried} tried");
        }
    }

    #[test]
    fn two_that_harm_by_themselves_are_both_found() {
        let (found, ..) = searched(32, |without| {
            0.5 * without
                .iter()
                .filter(|id| **id == "d03" || **id == "d17")
                .count() as f64
        });
        assert_eq!(found, [set(&["d03"]), set(&["d17"])]);
    }

    #[test]
    fn search_finds_both_if_removing_either_suffices() {
        let (found, ..) = searched(32, |without| {
            f64::from(u8::from(without.contains("d05") || without.contains("d30")))
        });
        assert_eq!(found, [set(&["d05"]), set(&["d30"])]);
    }

    #[test]
    fn two_of_which_either_harms_are_found_as_one_set() {
        for pair in [["d05", "d30"], ["d00", "d01"], ["d13", "d14"]] {
            let (found, rounds, _) = searched(32, |without| {
                f64::from(u8::from(pair.iter().all(|id| without.contains(id))))
            });
            assert_eq!(found, [set(&pair)], "{rounds}");
            assert!(rounds <= 12, "{rounds}");
        }
    }

    #[test]
    fn search_never_finds_untestable_item() {
        let mut search = Search::new(items(2));
        let probes = search.probes(6);
        assert_eq!(probes.len(), 2);
        for _ in 0..TRIES_MOST {
            let results: Vec<_> = search.probes(6).into_iter().map(|it| (it, None)).collect();
            search.learn(&results);
        }
        assert!(search.probes(6).is_empty() && search.found().is_empty());
        assert_eq!(search.open(), [set(&["d01", "d00"])]);
        assert!(Search::new(Vec::new()).probes(6).is_empty());
        assert!(Search::new(items(9)).probes(1).is_empty());
    }

    #[test]
    fn search_leaves_untestable_item_open_if_rest_is_cold() {
        let mut search = Search::new(items(9));
        let broken = "d05";
        for _ in 0..9 {
            let probes = search.probes(3);
            let results: Vec<_> = probes
                .into_iter()
                .map(|probe| {
                    let cold = RemovedShare {
                        low: -0.1,
                        share: 0.0,
                        high: 0.1,
                    };
                    let has_it = probe.without.iter().any(|id| id == broken);
                    (probe, (!has_it).then_some(cold))
                })
                .collect();
            search.learn(&results);
        }
        assert!(search.found().is_empty());
        assert_eq!(search.open(), [set(&[broken])]);
    }

    #[test]
    fn search_retries_undecided_set_then_leaves_it_open() {
        let mut search = Search::new(items(4));
        let undecided = RemovedShare {
            low: -0.4,
            share: 0.2,
            high: 0.8,
        };
        let first = search.probes(2);
        for tries in 0..TRIES_MOST {
            assert_eq!(search.tries(), tries);
            let probes = search.probes(2);
            assert_eq!(probes, first);
            let results: Vec<_> = probes
                .into_iter()
                .map(|probe| (probe, Some(undecided)))
                .collect();
            search.learn(&results);
        }
        assert!(search.probes(2).is_empty() && search.found().is_empty());
        assert_eq!(search.open().len(), 1);
        assert_eq!(search.open()[0].len(), 4);
        // With more time it is taken up again, once.
        assert!(search.reopen());
        let results = search.probes(2).into_iter();
        let results: Vec<_> = results.map(|probe| (probe, Some(undecided))).collect();
        assert_eq!(results.len(), 2);
        search.learn(&results);
        assert!(search.probes(2).is_empty());
    }

    #[test]
    fn search_tests_dominant_item_alone_with_two_probes() {
        let mut all = items(9);
        for item in &mut all {
            item.likelihood = 0.13;
        }
        all[3].likelihood = 0.95;
        assert_eq!(Search::new(all).probes(2)[0].part, ["d03"]);
    }

    #[test]
    fn search_tests_likely_item_alone() {
        let mut all = items(12);
        all[7].likelihood = 0.95;
        let probes = Search::new(all).probes(4);
        assert_eq!(probes[0].part, ["d07"]);
        assert_eq!(probes.len(), 4);
    }
}
