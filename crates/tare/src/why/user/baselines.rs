//! Chooses the baseline for the user's container: tries the available ones, barest first.
//!
//! Limits: a command whose output differs in every run is compared with the first baseline in which it works.

use std::path::Path;
use std::time::Duration;

use super::alone;
use super::reach::without_idle_network;
use crate::failed::Failed;
use tare_model::command::Tie;

use crate::cx::files::{self, Kind};
use crate::cx::{Context, sha256};
use crate::env::user_container::{Bare, ContainerRequest, UserContainer, limits};
use crate::env::{self, Driver};
use crate::why::fresh::Fresh;
use crate::why::observed::Inside;
use crate::why::user_container::ContainerQuestion;
use crate::why::user_container::baseline::{self, Here};
use crate::why::{self, Ask, Base, First, WhyError, error};

/// The run inside alone, the chosen baseline, and the runs on both sides.
pub(super) type FirstLook = (Inside, (ContainerQuestion, First));

/// Runs the command inside alone, and then with the barest baseline in which it does the same.
pub(super) fn seen(
    cx: &Context<'_>,
    from: (&dyn Driver, &ContainerRequest<'_>),
    ask: &mut Ask,
    own: &mut UserContainer,
) -> Result<FirstLook, Failed> {
    let [short, long] = why::calibrate::inside_limits(ask);
    let mut baselines = Baselines {
        cx,
        look: look_inside(cx, ask, own, short)?,
        longer: (short < long).then_some(long),
        own,
        fallback: None,
        trouble: None,
    };
    // The route to a server includes the engine's bridge, so that it is on both sides.
    if opens_a_socket(&baselines.look.0) || ask.call.client.is_some() {
        baselines.let_outside(from)?;
    }
    baselines.chosen(ask, from)
}

/// Runs the command inside alone and drops the differences that this shows to be none.
fn look_inside(
    cx: &Context<'_>,
    ask: &Ask,
    own: &mut UserContainer,
    limit: Duration,
) -> Result<(Inside, Option<Fresh>), Failed> {
    let look = why::calibrate::look_inside(cx, ask, limit).map_err(|error| alone(error, own))?;
    let inside = &look.0;
    if ask.call.client.is_none() && !inside.is_cut_off() {
        without_idle_network(own, opens_a_socket(inside));
    }
    limits::drop_equal(own, &inside.look.facts);
    Ok(look)
}

/// The first runs if the baseline is usable; otherwise how the command behaved differently.
type Did = Result<First, String>;

/// Tries the baselines one after the other.
struct Baselines<'a> {
    cx: &'a Context<'a>,
    own: &'a mut UserContainer,
    /// The run inside, and why each run needs a new container, if it does.
    look: (Inside, Option<Fresh>),
    /// After which time a run inside is ended if the first one was ended too early.
    longer: Option<Duration>,
    /// The first baseline in which only the output differs; one in which only stderr differs is preferred.
    fallback: Option<(ContainerQuestion, First)>,
    trouble: Option<WhyError>,
}

impl Baselines<'_> {
    /// Returns the barest baseline in which the command does the same. One in which it fails is unusable; if its
    /// output differs, parts that it may need are kept.
    fn chosen(
        mut self,
        ask: &mut Ask,
        (found, wish): (&dyn Driver, &ContainerRequest<'_>),
    ) -> Result<FirstLook, Failed> {
        let mut not_bare = None;
        // A running container contains more than its image.
        if self.own.inside.is_none() {
            loop {
                match self.bare(ask, found, wish)? {
                    Ok(chosen) => return Ok((self.look.0, chosen)),
                    Err(why) => not_bare = Some(why),
                }
                // The command may have been too fast to be seen with a socket.
                if !self.let_outside((found, wish))? {
                    break;
                }
            }
        }
        let (begun_ns, all) = (
            self.cx.clock.now_ns(),
            baseline::plain(self.own, &ask.driver),
        );
        let count = all.len();
        for (place, mut asks) in all.into_iter().enumerate() {
            if self.is_late(begun_ns, place, count) {
                continue;
            }
            if let Some(why) = not_bare.as_ref().and_then(|why| why.lines().next()) {
                asks.what = format!(
                    "{}, because its files as a bare process could not be: {why}",
                    asks.what
                );
            }
            if let Ok(first) = self.tried(ask, &asks, true)? {
                return Ok((self.look.0, (asks, first)));
            }
        }
        if let Some(found) = self.fallback {
            return Ok((self.look.0, found));
        }
        let trouble = self.trouble.expect("there is at least one baseline");
        let may_have_left = trouble.may_have_left();
        Err(Failed {
            may_have_left,
            ..Failed::failure(format!("the command works in the container, and in no plainer one of the same image: {trouble}"),
            )
            .maybe(trouble.hint())
        })
    }

    /// Gives bare processes the network of a similar container if they only have a loopback device and that network
    /// is available; returns whether it did.
    fn let_outside(
        &mut self,
        (found, wish): (&dyn Driver, &ContainerRequest<'_>),
    ) -> Result<bool, Failed> {
        let bare = &self.own.bare;
        let has_none = match bare.text("network") {
            // A server's network: the host can reach it, but it cannot reach anything else.
            Some("veth") => bare.value("bridge").is_none(),
            network => network == Some("none"),
        };
        if !has_none || self.own.not_bare.is_some() || self.own.inside.is_some() {
            return Ok(false);
        }
        let settings = match found.take_outside(self.cx, wish, self.own) {
            Ok(Some(settings)) => settings,
            Ok(None) => return Ok(false),
            Err(_) if self.cx.cancel.is_requested() => return Err(WhyError::Cancelled.into()),
            Err(error) => {
                self.own.notes.push(format!(
                    "a bare process here has a loopback device only: {error}"
                ));
                return Ok(false);
            }
        };
        for (name, value) in settings.0 {
            self.own.bare.0.insert(name, value);
        }
        self.own.notes.push(OUTSIDE.to_owned());
        Ok(true)
    }

    /// Uses the host's program if it has the same bytes, else the image's files; or returns why neither is possible.
    fn bare(
        &mut self,
        ask: &mut Ask,
        found: &dyn Driver,
        wish: &ContainerRequest<'_>,
    ) -> Result<Result<(ContainerQuestion, First), String>, Failed> {
        if let Some(why) = &self.own.not_bare {
            return Ok(Err(why.clone()));
        }
        let mut userland = None;
        let mut why = "what the host's own program does would take long to see".to_owned();
        if ask.call.client.is_some() {
            "the host's program may be another one".clone_into(&mut why);
        } else if self.look.0.look.wall_ns < BRIEF_NS {
            let files = env::host_files(self.own.names(|_| true), &self.own.bare);
            let (whole, less) = baseline::whole_and_less(self.own, &files);
            // The program is observed behind its entry point, as in the container.
            let asks = baseline::host(self.own, &whole);
            why = match self.tried(ask, &asks, false)? {
                Ok(first) => match baseline::other_reads(&first.env, here) {
                    Some(words) => words,
                    None => match baseline::other_bytes(&first.host, &first.env) {
                        None if complains_alike(&first) => {
                            return self.same_bytes(ask, (asks, first), less).map(Ok);
                        }
                        // Another program may print other warnings.
                        Some(words) if complains_alike(&first) || !misses_something(&first) => {
                            userland = Some(asks.base);
                            words
                        }
                        _ => format!("on the host's files {ON_ONE_SIDE}"),
                    },
                },
                Err(words) => format!("on the host's files {words}"),
            };
        }
        let all = match found.take_bare(self.cx, wish, self.own) {
            Ok(all) => all,
            Err(_) if self.cx.cancel.is_requested() => return Err(WhyError::Cancelled.into()),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut words = String::new();
        let barest_first = |files: &Bare| {
            let (whole, less) = baseline::whole_and_less(self.own, files);
            less.into_iter().chain([whole])
        };
        let all: Vec<Bare> = all.iter().flat_map(barest_first).collect();
        let begun_ns = self.cx.clock.now_ns();
        for (place, files) in all.iter().enumerate() {
            if self.is_late(begun_ns, place, all.len()) {
                continue;
            }
            let mut asks = baseline::image(self.own, files, &why);
            asks.userland = userland.clone().map(|base| Base {
                change: asks.base.change.clone(),
                ..base
            });
            match self.tried(ask, &asks, true)? {
                Ok(first) => return Ok(Ok((asks, first))),
                Err(other) => words = other,
            }
        }
        Ok(Err(words))
    }

    /// Whether it is too late for the baselines between the barest and the last, which has everything that may be
    /// needed.
    fn is_late(&self, begun_ns: u64, place: usize, count: usize) -> bool {
        let is_between = place > 0 && place + 1 < count;
        is_between && self.cx.clock.now_ns().saturating_sub(begun_ns) > BETWEEN_NS
    }

    /// The host's program, which is the same: without the optional parts of the command, if it then does the same.
    fn same_bytes(
        &mut self,
        ask: &mut Ask,
        whole: (ContainerQuestion, First),
        less: Option<Bare>,
    ) -> Result<(ContainerQuestion, First), Failed> {
        if let Some(less) = less {
            let asks = baseline::host(self.own, &less);
            match self.tried(ask, &asks, false)? {
                Ok(first) if complains_alike(&first) => return Ok((asks, first)),
                _ => {}
            }
        }
        Ok(whole)
    }

    /// Runs the command with a baseline, and inside if the first run there is not enough.
    fn measured(&mut self, ask: &mut Ask, asks: &ContainerQuestion) -> Result<First, WhyError> {
        let (inside, fresh) = &self.look;
        ask.own = Some(ContainerQuestion {
            fresh: fresh.clone(),
            ..asks.clone()
        });
        let mut first = why::calibrate::look(self.cx, ask, &ask.settings, Some(inside))?;
        // A container that loses what the first run writes, or cannot write it, never has the next.
        if fresh.is_none() && first.base_differs.is_some() {
            let of_base = first.base_differs.take();
            self.look.1 = of_base.map(|it| Fresh {
                first_run: None,
                ..it
            });
            return self.measured(ask, asks);
        }
        Ok(first)
    }

    /// Runs the command with a baseline. With `may_fall_back`, the baseline is used if no better one is found, and
    /// the command only does the same if it also complains alike.
    fn tried(
        &mut self,
        ask: &mut Ask,
        asks: &ContainerQuestion,
        may_fall_back: bool,
    ) -> Result<Did, Failed> {
        let mut first = self.measured(ask, asks);
        // The run inside was ended too early to show how much slower it is.
        if let (Ok(found), Some(long)) = (&first, self.longer)
            && self.look.0.is_open(found.host.wall_ns)
        {
            self.longer = None;
            self.look = look_inside(self.cx, ask, self.own, long)?;
            first = self.measured(ask, asks);
        }
        let inside = &self.look.0;
        match first {
            Ok(first) if inside.is_open(first.host.wall_ns) => {
                Err(alone(WhyError::too_long(ask, &inside.look), self.own))
            }
            // The output of a client is its measurements.
            Ok(first) if ask.call.client.is_some() => Ok(Ok(first)),
            Ok(first) if prints_the_same(&first) && (!may_fall_back || complains_alike(&first)) => {
                Ok(Ok(first))
            }
            Ok(first) => {
                let words = if prints_the_same(&first) {
                    ON_ONE_SIDE
                } else {
                    "it prints something else"
                };
                let is_nearer = self
                    .fallback
                    .as_ref()
                    .is_none_or(|(_, before)| prints_the_same(&first) && !prints_the_same(before));
                if may_fall_back && is_nearer {
                    self.fallback = Some((asks.clone(), first));
                }
                Ok(Err(words.to_owned()))
            }
            // The command does not end on either side.
            Err(WhyError::TooLong { .. }) if inside.is_cut_off() => {
                Err(alone(WhyError::too_long(ask, &inside.look), self.own))
            }
            Err(WhyError::Cancelled) => Err(WhyError::Cancelled.into()),
            Err(error) if error.may_have_left() => Err(error.into()),
            Err(error) => {
                let words = match &error {
                    WhyError::FailsOnHost { how, .. } => format!("it {how}"),
                    WhyError::NotInside { why, .. } => format!("it cannot be started: {why}"),
                    WhyError::Environment { source, .. } => source.to_string(),
                    other => other.to_string(),
                };
                self.trouble = Some(error);
                Ok(Err(words))
            }
        }
    }
}

/// Why a baseline with the same stdout is unusable.
const ON_ONE_SIDE: &str = "it writes to standard error on one side only";

/// Whether both sides print the same.
fn prints_the_same(first: &First) -> bool {
    first.host.report.stdout == first.env.report.stdout
}

/// Whether both sides write to stderr, or neither. In a pipe a command may fail on one side while the shell exits
/// with status 0. The texts are not compared, because they may contain a process ID or a time.
fn complains_alike(first: &First) -> bool {
    first.host.report.stderr.0.is_empty() == first.env.report.stderr.0.is_empty()
}

/// Whether either side names something missing.
fn misses_something(first: &First) -> bool {
    let both = [&first.host.report, &first.env.report];
    both.into_iter().any(error::is_something_missing)
}

/// Note about a bare process with the network of a container.
const OUTSIDE: &str = "the bare process has an address on a bridge network of the run's own, from which it reaches what the container reaches";

/// Whether the command was seen with a socket.
fn opens_a_socket(inside: &Inside) -> bool {
    let seen = inside.look.report.seen.as_ref();
    seen.is_some_and(|seen| seen.ties.contains(&Tie::Socket))
}

/// How long baselines between the barest and the last are tried, nanoseconds.
const BETWEEN_NS: u64 = 6_000_000_000;

/// Larger files, bytes, have no hash.
const LARGE: u64 = 64 << 20;

/// What this machine has under a path; bytes are compared if they were hashed in the container.
fn here(path: &Path, digest: Option<&str>) -> Here {
    let Ok(path) = files::canonical(path) else {
        return Here::Absent;
    };
    match (files::kind(&path), digest) {
        (Ok(Kind::File { .. }), None) => Here::Same,
        // A large file here cannot equal a small one there.
        (Ok(Kind::File { length, .. }), Some(_)) if length > LARGE => Here::Other,
        (Ok(Kind::File { .. }), Some(digest)) => match files::read(&path) {
            Ok(bytes) if sha256(&bytes) == digest => Here::Same,
            Ok(_) => Here::Other,
            Err(_) => Here::Absent,
        },
        _ => Here::Absent,
    }
}

/// A command that takes longer inside is not run on the host's files just to check whether its program is the same.
const BRIEF_NS: u64 = 10_000_000_000;
