//! A container of the user's own taken once more, changed as its user would change it: the line, or the compose file.
//!
//! What it is asked for stands in the words of differences; what was changed is told, so that it can be repeated.
//! What it cannot see: a change that means the same in other words; then the switch that found it stands in.

use crate::env::prelude::*;

use super::super::api::Api;
use super::super::{DETECT_LIMIT, Docker};
use super::difference::parts;
use super::{Beside, Found, Template, kept, remedy};
#[cfg(unix)]
use super::{line, patch, version_of};
use crate::env::own::command;
use crate::env::own::{self as env_own, Changed, LIKE, Source, Taken, Wish};

/// The file in the run's folder in which the changed configuration is kept.
const KEPT: &str = "own-container-changed.json";

impl Docker {
    /// Takes it once more without these differences: [`crate::env::Driver::take_changed`]. A line is changed as its
    /// user would.
    pub(crate) fn taken_changed(
        &self,
        cx: &Context<'_>,
        taken: &Taken<'_>,
        without: &[String],
    ) -> Result<Changed, EnvError> {
        let Taken { wish, settings } = *taken;
        let fallback = Changed {
            settings: env_own::without(settings, without),
            change: env_own::BY_ITS_SWITCH.to_owned(),
        };
        if without.iter().any(|id| command::is_part(id)) {
            return Ok(fallback);
        }
        let (api, _) = self.identify_linux(cx, DETECT_LIMIT)?;
        let like = settings.text(LIKE).unwrap_or_default();
        let words = match wish.source {
            Source::Line(words) => words,
            Source::Service { service, .. } => {
                let changed = service_changed(cx, &api, taken, service, without)?;
                return Ok(changed.unwrap_or(fallback));
            }
            Source::Container(_) | Source::Inside(_) => return Ok(fallback),
        };
        let found = Found::of(cx, &api, &wish)?;
        let Some(patch) = patch_of(cx, &api, words, &found.template, without)? else {
            return Ok(fallback);
        };
        let wish = Wish {
            source: Source::Line(&patch.0),
            ..wish
        };
        let mut changed = Found::of(cx, &api, &wish)?;
        changed
            .template
            .share_like(&Template::of(cx, &api, like)?.0);
        let file = kept(wish.folder, KEPT, &changed.template)?;
        Ok(Changed {
            settings: changed.settings(&file, wish.context),
            change: format!("your line {}", patch.1),
        })
    }
}

/// The service with an override laid over its file that takes these differences away; `None` where there is none
/// that does exactly that.
fn service_changed(
    cx: &Context<'_>,
    api: &Api,
    taken: &Taken<'_>,
    service: &str,
    without: &[String],
) -> Result<Option<Changed>, EnvError> {
    let Taken { wish, settings } = *taken;
    let like = settings.text(LIKE).unwrap_or_default();
    let (before, _) = Template::of(cx, api, like)?;
    let beside = wish.with_dependencies.then(|| Beside {
        network: before.network().map(str::to_owned),
        notes: Vec::new(),
    });
    let found = Found::changed(cx, api, &wish, None, beside.as_ref())?;
    let section = found.section.as_ref();
    let Some(patch) = section.and_then(|section| remedy::patch(service, section, without)) else {
        return Ok(None);
    };
    let over = wish.folder.join("compose.override.yml");
    files::write_working(&over, patch.as_bytes())?;
    let mut changed = Found::changed(cx, api, &wish, Some(&over), beside.as_ref())?;
    changed.template.share_like(&before);
    let left: Vec<String> = parts(changed.template.pair())
        .into_iter()
        .map(|part| part.difference.id)
        .collect();
    if without.iter().any(|id| left.contains(id)) {
        return Ok(None);
    }
    let file = kept(wish.folder, KEPT, &changed.template)?;
    Ok(Some(Changed {
        settings: changed.settings(&file, wish.context),
        change: format!("your compose file with `{patch}` laid over it"),
    }))
}

/// The line without these differences, and what was changed in it.
#[cfg_attr(
    not(unix),
    allow(unused_variables, reason = "no client can be asked there")
)]
fn patch_of(
    cx: &Context<'_>,
    api: &Api,
    words: &[String],
    template: &Template,
    without: &[String],
) -> Result<Option<(Vec<String>, String)>, EnvError> {
    #[cfg(unix)]
    if let Some(verb) = env_own::verb(words) {
        let version = version_of(api)?;
        let ask = |words: &[String]| line::asked(cx, &version, words).ok().map(|it| it.body);
        let patch = patch::patched(words, verb, template.pair(), without, ask);
        return Ok(patch.map(|patch| (patch.words, patch.how)));
    }
    Ok(None)
}
