//! The containers of an arm of a study that is like a user's: one configuration for all instances, or one for each node.

use crate::env::prelude::*;

use bollard::models::{ContainerCreateBody, ImageInspect};

use super::super::api::Api;
use super::super::settings::Settings;
use super::difference::Copied;
use super::{EngineMachine, ResolvedContainer, Template, networks};
use crate::env::user_container::like::Like;
use crate::env::user_container::shared::Copy;
use crate::env::user_container::{Consent, ContainerRequest, Shares, Source};

/// What an instance of an arm like a user's container is made of.
pub(crate) struct ArmTemplate {
    /// Its configuration, without the differences that the settings leave away.
    pub(crate) body: ContainerCreateBody,
    /// The copies that replace its mounts, and their targets.
    pub(crate) copied: Vec<(Copied, Copy)>,
    /// Name of its image.
    pub(crate) name: String,
    pub(crate) image: ImageInspect,
}

/// The containers that an arm's settings name: one, or one for each of its nodes.
pub(crate) fn templates_of(
    cx: &Context<'_>,
    (api, machine): (&Api, &EngineMachine<'_>),
    (like, nodes): (&Like, u32),
    (arm, settings): (&ArmId, &Settings),
) -> Result<Vec<ArmTemplate>, EnvError> {
    let sources = like.sources();
    check_nodes(nodes, sources.len())?;
    let template_of = |source| {
        let (mut template, image) = template_of(cx, api, source, settings)?;
        if !like.is_kept() {
            template.joins = settings.join_networks;
            networks::isolate(cx, api, &mut template, Some(arm))?;
        }
        let without = &settings.without;
        Ok(ArmTemplate {
            body: template.body_of_copy(without, machine, &mut Vec::new())?,
            copied: template.copied_for(without),
            name: template.image().to_owned(),
            image,
        })
    };
    sources.into_iter().map(template_of).collect()
}

/// The configuration of a container that an arm's settings name.
fn template_of(
    cx: &Context<'_>,
    api: &Api,
    source: Source<'_>,
    settings: &Settings,
) -> Result<(Template, ImageInspect), EnvError> {
    if let Source::Container(name) = source {
        return Template::read(cx, api, name);
    }
    let wish = ContainerRequest {
        source,
        folder: cx.scratch,
        shares: Shares::ReadOnly,
        with_dependencies: false,
        context: None,
        consent: Consent::default(),
    };
    let found = ResolvedContainer::resolve(cx, api, &wish)?;
    if found.platform != settings.platform && found.platform.is_some() {
        return Err(EnvError::absent(
            "it names a platform, which is a setting of the arm",
            "say `platform = \"…\"` next to it too",
        ));
    }
    Ok((found.template, found.image))
}

/// Checks that the settings name a service for every node, unless all nodes are alike.
fn check_nodes(nodes: u32, services: usize) -> Result<(), EnvError> {
    if services == 1 || nodes as usize <= services {
        return Ok(());
    }
    Err(EnvError::absent(
        format!(
            "a workload has {nodes} nodes, and `compose` names {services} services of the file"
        ),
        "name one service for each node, or a single one of which every node is a copy",
    ))
}
