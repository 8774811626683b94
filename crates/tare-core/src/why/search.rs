//! Finds which of many differences cause a slowdown, by removing them in parts.
//!
//! Delta debugging over sets, with intervals in place of a test that fails or passes. A set that is removed is *hot*
//! if a part of the slowdown that is surely above zero and not small goes away with it. A hot set is split, likely
//! members alone first; hot parts are split again, down to single differences.
//!
//! If the whole is hot but no half of it is, either half suffices to keep the command slow. Both are then searched,
//! each while the other is removed, and the result is one set that acts only together. Differences that are slow only
//! together are hot on either side, and both are found. If every part of many carries its share, they are one result.
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

/// The fewest differences that count as many.
pub const MANY: usize = 12;

/// A difference that may cause the slowdown.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its name.
    pub id: String,
    /// How likely it is, from 0 to 1.
    pub likelihood: f64,
    /// Differences that are first removed together under this name, if it stands for several.
    pub members: Vec<Item>,
}

impl Item {
    /// The names of what is removed with it.
    pub(super) fn ids(&self) -> impl Iterator<Item = &String> {
        let own = self.members.is_empty().then_some(&self.id);
        own.into_iter().chain(self.members.iter().map(|it| &it.id))
    }
}

fn ids(group: &[Item]) -> impl Iterator<Item = String> + '_ {
    group.iter().flat_map(Item::ids).cloned()
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
#[derive(Debug, Clone, Default, PartialEq)]
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
                group: items,
                ..Job::default()
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
        let whole = |job: &Job| job.base.iter().cloned().chain(ids(&job.group)).collect();
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

    /// The fewest parts that the next trials need: with two it cannot be seen whether many carry a little each.
    pub fn parts_least(&self) -> usize {
        let is_large = self.jobs.first().is_some_and(|job| job.group.len() >= MANY);
        if is_large { 3 } else { 2 }
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
                .chain(job.rest.iter().flat_map(|group| ids(group)))
                .collect();
            for part in split(&job.group, most.max(2)) {
                let part: Vec<String> = ids(&part).collect();
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
            let is_in = |item: &&Item| item.ids().all(|id| probe.part.contains(id));
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
        if job.rest.is_empty() && is_spread(&job.group, results) {
            self.found
                .push(job.base.into_iter().chain(ids(&job.group)).collect());
            return;
        }
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
                ..Job::default()
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
            job.group
                .retain(|item| item.ids().all(|id| untried.contains(&id)));
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
            let item = job.group.remove(0);
            if !item.members.is_empty() {
                job.group = item.members;
                continue;
            }
            job.base.push(item.id);
            if job.rest.is_empty() {
                self.found.push(job.base);
                return;
            }
            job.group = job.rest.remove(0);
        }
        self.jobs.push(job);
    }
}

/// Whether a group of many was removed in at least three parts, each of which carries about its share of a slowdown
/// that the group carries.
fn is_spread(group: &[Item], results: &[&(Probe, Option<RemovedShare>)]) -> bool {
    /// The least that all parts carry together.
    const ALL: f64 = 0.7;
    let shares = results.iter().map(|(_, shown)| shown.map(|it| it.share));
    let Some(shares) = shares.collect::<Option<Vec<f64>>>() else {
        return false;
    };
    let all: f64 = shares.iter().sum();
    let even = all / shares.len() as f64;
    let mut shares = shares.iter();
    group.len() >= MANY
        && shares.len() > 2
        && all >= ALL
        && shares.all(|share| (0.4 * even..=2.0 * even).contains(share))
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
mod tests;
