//! Takes a user's container again with a change as its user would make it: to the line, or to the compose file.
//!
//! The change is requested by names of differences; the actual change is reported, so that the user can repeat it.
//! Limits: an equivalent change in other words is not found; then the switch of the difference is used instead.

use crate::env::prelude::*;

use super::super::Docker;
use super::super::api::Api;
use super::difference::parts;
use super::patch::{Patch, patched};
use super::{ResolvedContainer, StartedDependencies, Template, kept, line, remedy, version_of};
use crate::env::user_container::command;
use crate::env::user_container::{
    self as env_own, ArmRequest, Changed, ContainerRequest, LIKE, Source,
};

/// The file in the run's folder with the changed configuration.
const KEPT: &str = "own-container-changed.json";

impl Docker {
    /// Takes it again without these differences: [`crate::env::Driver::take_changed`]. A line is changed as its user
    /// would.
    pub(crate) fn taken_changed(
        &self,
        cx: &Context<'_>,
        taken: &ArmRequest<'_>,
        without: &[String],
    ) -> Result<Changed, EnvError> {
        let ArmRequest { wish, settings } = *taken;
        let fallback = Changed {
            settings: env_own::without(settings, without),
            change: env_own::BY_ITS_SWITCH.to_owned(),
        };
        if without.iter().any(|id| command::is_part(id)) {
            return Ok(fallback);
        }
        let (api, _) = self.identify_linux(cx)?;
        let like = settings.text(LIKE).unwrap_or_default();
        let words = match wish.source {
            Source::Line(words) => words,
            Source::Service { service, .. } => {
                let changed = service_changed(cx, &api, taken, service, without)?;
                return Ok(changed.unwrap_or(fallback));
            }
            Source::Container(_) | Source::Inside(_) => return Ok(fallback),
        };
        let found = ResolvedContainer::resolve(cx, &api, &wish)?;
        let Some(patch) = patch_of(cx, &api, words, &found.template, without)? else {
            return Ok(fallback);
        };
        let wish = ContainerRequest {
            source: Source::Line(&patch.words),
            ..wish
        };
        let mut changed = ResolvedContainer::resolve(cx, &api, &wish)?;
        changed
            .template
            .share_like(&Template::read(cx, &api, like)?.0);
        let file = kept(wish.folder, KEPT, &changed.template)?;
        Ok(Changed {
            settings: changed.settings(&file, wish.context),
            change: format!("your line {}", patch.how),
        })
    }
}

/// The service with a compose override that removes these differences; `None` if no override does exactly that.
fn service_changed(
    cx: &Context<'_>,
    api: &Api,
    taken: &ArmRequest<'_>,
    service: &str,
    without: &[String],
) -> Result<Option<Changed>, EnvError> {
    let ArmRequest { wish, settings } = *taken;
    let like = settings.text(LIKE).unwrap_or_default();
    let (before, _) = Template::read(cx, api, like)?;
    let beside = wish.with_dependencies.then(|| StartedDependencies {
        network: before.network().map(str::to_owned),
        notes: Vec::new(),
    });
    let found = ResolvedContainer::changed(cx, api, &wish, None, beside.as_ref())?;
    let section = found.section.as_ref();
    let Some(patch) = section.and_then(|section| remedy::patch(service, section, without)) else {
        return Ok(None);
    };
    let over = wish.folder.join("compose.override.yml");
    files::write_working(&over, patch.as_bytes())?;
    let mut changed = ResolvedContainer::changed(cx, api, &wish, Some(&over), beside.as_ref())?;
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

/// The line without these differences, if a change of its words has that effect.
fn patch_of(
    cx: &Context<'_>,
    api: &Api,
    words: &[String],
    template: &Template,
    without: &[String],
) -> Result<Option<Patch>, EnvError> {
    let Some(verb) = env_own::verb(words) else {
        return Ok(None);
    };
    let version = version_of(api)?;
    let ask = |words: &[String]| line::asked(cx, &version, words).ok().map(|it| it.body);
    Ok(patched(words, verb, template.pair(), without, ask))
}
