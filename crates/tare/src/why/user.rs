//! Answers `tare why` about the user's container: takes it, compares it and searches for what makes it slow.

mod as_typed;
mod baselines;
mod reach;
pub(super) mod server;
mod starts;

use tare_model::CommandCall;

use self::baselines::{FirstLook, seen};
pub(crate) use self::reach::hint_kept;
use super::question::Subject;
use super::rounds::{Measured, Runner};
use super::words::took;
use crate::cx::stdin::{self, Input};
use crate::cx::{Context, Observer};
use crate::env::user_container::{ArmRequest, Shares, Source, UserContainer, WHICH};
use crate::env::{self, Driver, EnvError};
use crate::failed::Failed;
use crate::output;
use crate::report;
use crate::service::user::UserClient;
use crate::session::Session;
use crate::why::fresh;
use crate::why::pace::Pace;
use crate::why::user_container::{
    ContainerQuestion, applied, baseline, call, likeliest_first, one_more_ns,
};
use crate::why::{Ask, First, WhyError};

/// Most bytes of stdin that a command gets with every run.
const INPUT_BYTES: usize = 1 << 20;

impl Subject<'_> {
    /// Runs the command on both sides. If it fails or complains because the user's data is read-only, it gets copies.
    fn looked(
        &self,
        cx: &Context<'_>,
        found: &dyn Driver,
        ask: &mut Ask,
        own: &mut UserContainer,
    ) -> Result<FirstLook, Failed> {
        let wish = self.wish(cx.scratch);
        let first = match seen(cx, (found, &wish), ask, own) {
            Err(failed) if failed.may_have_left || cx.cancel.is_requested() => return Err(failed),
            Ok(seen) if !mentions_read_only(&seen.0.stderr_text()) => return Ok(seen),
            first => first,
        };
        let trouble = |source| of_driver(self.driver, source);
        if self.asked.with_dependencies {
            found.check_dependencies(cx, &wish).map_err(trouble)?;
        }
        let copied = match self.asked.shares() {
            Shares::ReadOnly => found.take_copies(
                cx,
                &ArmRequest {
                    wish,
                    settings: &own.settings,
                },
            ),
            Shares::Copied | Shares::Shared => Ok(None),
        };
        let Some(copied) = copied.map_err(trouble)? else {
            return first;
        };
        output::tell(
            "it does not do its work while what is yours is read-only; once more with copies that it may write to",
        );
        for line in copied {
            output::tell(&line.now);
            own.notes
                .retain(|notes| Some(notes) != line.before.as_ref());
            own.notes.push(line.now);
        }
        for line in reach::torn(cx, own) {
            output::tell(&line);
            own.notes.push(line);
        }
        seen(cx, (found, &wish), ask, own)
    }
}

/// Notes about a plain run of the container, one line each; for a slow start including its cause.
///
/// # Errors
/// Ctrl-C, or something of a start may be left.
pub(crate) fn about_a_run(
    cx: &Context<'_>,
    ask: &Ask,
    first: &First,
    left_ns: u64,
) -> Result<Vec<String>, Failed> {
    let Some(asks) = &ask.own else {
        return Ok(Vec::new());
    };
    let typed = as_typed::described(cx, ask, asks, first, left_ns)?;
    let start = starts::described(cx, ask, asks, first)?;
    Ok(typed.into_iter().chain(start).collect())
}

/// The stdin of every run: that of Tare, if the container's command gets it.
fn input(own: &mut UserContainer) -> Result<Option<String>, Failed> {
    if !own.reads_input {
        // Stdin may belong to the caller, as in a loop that reads lines.
        return Ok(None);
    }
    let text = match stdin::read()? {
        Input::None | Input::Silent => return Ok(None),
        Input::Bytes(bytes) if bytes.len() <= INPUT_BYTES => String::from_utf8(bytes).ok(),
        Input::Bytes(_) | Input::TooMuch => None,
    };
    let Some(text) = text else {
        return Err(Failed::usage(format!(
            "standard input of a container's command is text of up to {INPUT_BYTES} bytes"
        ))
        .hint(
            "mount a file with it, and let the command read that: `… sh -c 'COMMAND </data/FILE'`",
        ));
    };
    let note = format!("standard input: {} bytes, given to every run", text.len());
    own.notes.push(note);
    Ok(Some(text))
}

/// The engine that has a container of this name, among the usual ones.
///
/// # Errors
/// Several have one.
pub(crate) fn engine_of(cx: &Context<'_>, container: &str) -> Result<Option<&'static str>, Failed> {
    let drivers = env::usual().into_iter();
    let having: Vec<&str> = drivers
        .filter(|driver| driver.has_container(cx, container))
        .map(crate::env::Driver::id)
        .collect();
    one_of(container, &having)
}

fn one_of(container: &str, having: &[&'static str]) -> Result<Option<&'static str>, Failed> {
    match having {
        [first, second, ..] => Err(Failed::usage(format!(
            "`{container}` is the name of a container of {first} and of one of {second}"
        ))
        .hint(format!("say which: `--env {first}` or `--env {second}`"))),
        having => Ok(having.first().copied()),
    }
}

impl Subject<'_> {
    /// What would be done, one line each; runs nothing of the user's.
    pub(crate) fn plan(
        &self,
        session: &Session,
        observer: &dyn Observer,
    ) -> Result<Vec<String>, Failed> {
        let (own, ask) = self.taken(&session.context(observer))?;
        let command = report::command_line(&ask.call.argv);
        let run = session.run().as_str();
        Ok(reach::plan(self, &own, &command, run))
    }

    /// Takes the container and runs the command in it and in its baseline.
    pub(crate) fn ask(
        self,
        session: &Session,
        observer: &dyn Observer,
    ) -> Result<(Ask, First), Failed> {
        let cx = session.context(observer);
        let found = env::find(self.driver).expect("the name was looked up before");
        let (mut own, mut ask) = self.taken(&cx)?;
        for line in &own.notes {
            output::tell(line);
        }
        let command = report::command_line(&ask.call.argv);
        output::tell(&reach::announced(&self, &own, &command));
        let (_, (mut asks, mut first)) = self.looked(&cx, found, &mut ask, &mut own)?;
        if self.asked.client.is_some() {
            first.remarks.extend(server::weighed(&mut asks, &first));
        }
        let mut lines = vec![baseline::describe(&asks)];
        lines.extend(own.notes.iter().cloned());
        likeliest_first(&mut asks, &first);
        let fresh = ask.own.take().and_then(|tried| tried.fresh);
        output::tell(&lines[0]);
        if let Some(why) = &fresh {
            let remark = fresh::described(why);
            output::tell(&remark);
            lines.push(remark);
        }
        ask.carried = lines;
        ask.own = Some(ContainerQuestion {
            fresh,
            ..asks.clone()
        });
        output::tell(&at_first_look(&asks, &first));
        for remark in &first.remarks {
            output::tell(&format!("note: {remark}"));
        }
        Ok((ask, first))
    }

    /// Takes the container without running it.
    fn taken(&self, cx: &Context<'_>) -> Result<(UserContainer, Ask), Failed> {
        let Subject {
            driver,
            source,
            asked,
        } = *self;
        let found = env::find(driver).expect("the name was looked up before");
        let is_other = |name: &&String| !WHICH.contains(&name.as_str());
        if let Some(name) = asked.settings.0.keys().find(is_other) {
            return Err(Failed::usage(format!(
                    "`{name}` has no effect: the container's own configuration holds"
                ),
            )
            .hint("change the `docker run` line, or ask about an environment with `--env docker --set …`"));
        }
        let mut own = found.take(cx, &self.wish(cx.scratch)).map_err(|source| {
            if cx.cancel.is_requested() {
                return WhyError::Cancelled.into();
            }
            of_driver(driver, source)
        })?;
        // The command is part of the line.
        let command = match source {
            Source::Line(_) => &[],
            _ => asked.command.as_slice(),
        };
        reach::alone(cx, &own)?;
        if command.is_empty() {
            may_run_twice(&own, asked.shares())?;
        } else {
            own.forget_entry();
        }
        let adapt = |client| server::adapted(&mut own, client, asked.pick.as_ref());
        let client = asked.client.as_ref().map(adapt);
        let client = client.transpose()?;
        own.notes
            .extend(client.as_ref().and_then(|it| server::own_cost(cx, it)));
        let input = input(&mut own)?;
        let call = CommandCall {
            stdin: input,
            ..call(&own, command)
        };
        if call.argv.is_empty() {
            return Err(
                Failed::usage(format!("`{}` has no command of its own", own.name))
                    .hint("give one behind the image, or behind `--`"),
            );
        }
        let mut typed = vec![own.name.clone()];
        typed.extend(call.argv.clone());
        let settings = own.inside.as_ref().unwrap_or(&own.settings).clone();
        let call = CommandCall {
            client: client.as_ref().map(UserClient::to_text),
            ..call
        };
        let ask = Ask {
            command: typed,
            ..asked.asks(driver, settings, call)
        };
        Ok((own, ask))
    }
}

/// Refuses the container's command if a copy would answer in place of the original, unless the user allows that.
fn may_run_twice(own: &UserContainer, shares: Shares) -> Result<(), Failed> {
    match &own.answers {
        Some(why) if shares != Shares::Shared => Err(Failed::usage(format!("the command of `{}` is not run a second time: {why}", own.name),
        )
        .hint("name another command, behind `--`; or stop the original, and `--share-writable` runs it all the same")),
        _ => Ok(()),
    }
}

/// The times of the command on both sides in its first runs.
fn at_first_look(asks: &ContainerQuestion, first: &First) -> String {
    format!(
        "{} {}, {} in the container at the first look",
        took(&first.host),
        if asks.plain.is_some() {
            "as a bare process"
        } else {
            "plain"
        },
        took(&first.env),
    )
}

/// Whether a program reports, in common wording, that it could not write.
fn mentions_read_only(said: &str) -> bool {
    said.contains("Read-only file system") || said.contains("EROFS")
}

/// The error for a command that fails in its own container, where there is no host to compare with.
fn alone(trouble: WhyError, own: &UserContainer) -> Failed {
    let may_have_left = trouble.may_have_left();
    let failed = match &trouble {
        WhyError::FailsInside { how, said, .. } => {
            let hint = mentions_read_only(said).then(|| {
                "it writes to a volume or folder of yours, which is shown read-only: `--share-writable` lets it, and every run of it then changes what is there".to_owned()
            });
            Failed::failure(format!("the command fails in a copy of the container: it {how}{said}"),
            )
            .hint(hint.or_else(|| reach::networks_hint(own)).unwrap_or_else(|| {
                "run it in the container by hand until it exits with status 0; a copy lacks your networks, sockets and writable folders (`--join-networks`, `--share-writable`)".to_owned()
            }))
        }
        WhyError::TooLong { limit_s, .. } => Failed::failure(format!("the command in the container did not end within {limit_s} s: a service that never ends has no time to compare"),
        )
        .hint("name what it is to do: `tare why --like CONTAINER -- CMD`, or a command behind the image"),
        _ => return trouble.into(),
    };
    Failed {
        may_have_left,
        ..failed
    }
}

fn of_driver(driver: &str, source: EnvError) -> Failed {
    WhyError::Environment {
        env: driver.to_owned(),
        source,
    }
    .into()
}

/// Applies the fix as the user would, and measures whether the slowdown is gone.
pub(crate) fn apply(
    subject: Subject<'_>,
    ask: &Ask,
    first: &First,
    runner: &mut Runner<'_>,
    measured: Measured,
) -> Result<Measured, Failed> {
    let (Some(asks), false) = (&ask.own, measured.is_over()) else {
        return Ok(measured);
    };
    let Some((finding, without)) =
        applied::found(&measured.dossier, &measured.data.head.study.arms)
    else {
        output::tell("nothing was confirmed that could be changed, so nothing was applied");
        return Ok(measured);
    };
    let pace = Pace::from_run(&measured.data, &ask.driver, first);
    let left_ns = runner.left_ns(ask);
    if left_ns < one_more_ns(asks, pace) / 2 {
        output::tell("no time is left to apply what was found; a longer `--budget` has some");
        return Ok(measured);
    }
    let found = env::find(subject.driver).expect("the name was looked up before");
    let changed = {
        let cx = runner.context();
        let taken = ArmRequest {
            wish: subject.wish(cx.scratch),
            settings: asks.copy.as_ref().unwrap_or(&ask.settings),
        };
        found
            .take_changed(&cx, &taken, &without)
            .map_err(|source| of_driver(subject.driver, source))?
    };
    output::tell(&format!(
        "applying what was found: {}",
        output::printable(&changed.change)
    ));
    let n_arms = measured.data.head.arms.len();
    let what = (changed.change.as_str(), finding.price.as_str());
    let mut study = applied::study(ask, first, n_arms, left_ns, &changed.settings, what);
    pace.plan_launches(ask, &mut study, left_ns);
    Ok(runner.more(&study, measured))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_in_two_engines_is_ambiguous() {
        let failed = one_of("web", &["docker", "podman"]).unwrap_err();
        assert!(failed.to_string().contains("`web`"), "{failed}");
        assert_eq!(one_of("web", &["podman"]).unwrap(), Some("podman"));
        assert_eq!(one_of("web", &[]).unwrap(), None);
    }
}
