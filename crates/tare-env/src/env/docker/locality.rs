//! Determines whether the engine's network is this machine's.
//!
//! An address from the engine is useless if its bridge is in another machine or network namespace: Docker Desktop, a
//! rootless or a remote engine. Those are excluded first by what the engine reports about itself, because their
//! bridge may have the same address as one of this machine's. Then the bridge's gateway must be an address of this
//! machine, which is checked by opening a socket on it.
//! Limits: does not detect an engine in a virtual machine that has the same kernel and host name, shares no bridge,
//! and is used with the host's network.

use crate::env::prelude::*;

use std::net::TcpListener;

use bollard::models::{ChangeType, ContainerInspectResponse, FilesystemChange};
use bollard::query_parameters::InspectContainerOptions;

use super::super::{PublishedAt, peer};
use super::api::Api;

/// Why the engine's machine is not this one, according to what the engine reports.
pub(super) fn elsewhere(engine: &Facts) -> Option<String> {
    let fact = |name: &str| engine.get(name).map_or("", String::as_str);
    if fact(fact::ENGINE_SYSTEM) == "Docker Desktop" {
        return Some(
            "Docker Desktop keeps its containers in a virtual machine whose bridge is not reachable from here"
                .into(),
        );
    }
    if fact(fact::ENGINE_SECURITY).contains("rootless") {
        return Some(
            "a rootless engine keeps its bridge in a network namespace of its own, not reachable from here".into(),
        );
    }
    if fact(fact::ENGINE_ENDPOINT).starts_with("tcp://") {
        return Some("the engine is reached over TCP and may be on another machine".into());
    }
    if !cfg!(target_os = "linux") {
        return Some("the engine's machine is a virtual one".into());
    }
    if fact(fact::ENGINE_REMOTE) == "true" {
        return Some("the engine's socket leads to a host of another name than this one".into());
    }
    let kernel = files::read_text(Path::new("/proc/sys/kernel/osrelease")).ok()?;
    (kernel.trim() != fact(fact::ENGINE_KERNEL)).then(|| {
        format!(
            "the engine runs on another kernel ({}) than this machine ({})",
            fact(fact::ENGINE_KERNEL),
            kernel.trim()
        )
    })
}

/// The container's and the gateway's address on its bridge, if that gateway is this machine.
pub(super) fn bridge(api: &Api, container: &str) -> Result<(IpAddr, IpAddr), Reason> {
    let (own, gateway) = addresses(api, container)?;
    let gateway = gateway.ok_or_else(no_address)?;
    is_here(gateway)?;
    Ok((own, gateway))
}

/// The container's address on its bridge, wherever the engine is.
pub(super) fn own(api: &Api, container: &str) -> Result<IpAddr, Reason> {
    addresses(api, container).map(|(own, _)| own)
}

fn addresses(api: &Api, container: &str) -> Result<(IpAddr, Option<IpAddr>), Reason> {
    let found = inspect(api, container)?;
    let networks = found
        .network_settings
        .and_then(|settings| settings.networks);
    let endpoint = networks.and_then(|networks| networks.into_values().next());
    let address = |text: Option<String>| text.and_then(|text| text.parse::<IpAddr>().ok());
    let (own, gateway) = endpoint.map_or((None, None), |endpoint| {
        (address(endpoint.ip_address), address(endpoint.gateway))
    });
    let own = peer::on_network(own.ok_or_else(no_address)?)?;
    Ok((own, gateway.map(peer::on_network).transpose()?))
}

fn no_address() -> Reason {
    no_path("the container has no address on the bridge")
}

fn inspect(api: &Api, container: &str) -> Result<ContainerInspectResponse, Reason> {
    api.call(
        "inspect the container",
        CONTROL_LIMIT,
        api.client.inspect_container(container, None),
    )
    .map_err(|error| no_path(error.to_string()))
}

/// Size of the container's image and writable layer, bytes, without volumes.
pub(super) fn disk_bytes(api: &Api, container: &str) -> Option<u64> {
    let options = InspectContainerOptions { size: true };
    let request = api.client.inspect_container(container, Some(options));
    let found = api.call("ask for the container's size", CONTROL_LIMIT, request);
    u64::try_from(found.ok()?.size_root_fs?).ok()
}

/// The paths of the container's layer that were added or changed.
pub(super) fn written(api: &Api, container: &str) -> BTreeSet<String> {
    let request = api.client.container_changes(container);
    let found = api.call("ask for the container's changes", CONTROL_LIMIT, request);
    let changes = found.ok().flatten().into_iter().flatten();
    let is_left = |change: &FilesystemChange| change.kind != ChangeType::_2;
    changes.filter(is_left).map(|change| change.path).collect()
}

/// Where this machine's kernel accounts for the container, if it does.
pub(super) fn charged(api: &Api, container: &str) -> Charged {
    let found = inspect(api, container).ok();
    let found = found.and_then(|found| Some((found.state?.pid?, found.id?)));
    match found.map(|(pid, id)| (u32::try_from(pid), id)) {
        Some((Ok(pid), id)) if pid > 0 => Charged::to_groups_of(pid, &id),
        _ => Charged::Nowhere,
    }
}

fn is_here(gateway: IpAddr) -> Result<(), Reason> {
    let opened = TcpListener::bind((gateway, 0));
    opened.map(drop).map_err(|error| {
        no_path(format!(
            "the engine's bridge has the gateway {gateway}, which is not this machine ({error})"
        ))
    })
}

/// The default bridge's gateway, if it is this machine.
pub(super) fn gateway(api: &Api) -> Option<IpAddr> {
    let request = api.client.inspect_network("bridge", None);
    let found = api
        .call("inspect the bridge", CONTROL_LIMIT, request)
        .ok()?;
    let configurations = found.ipam?.config?;
    let gateways = configurations.into_iter().filter_map(|configuration| {
        let named = configuration.gateway.and_then(|text| text.parse().ok());
        named.or_else(|| first_address(&configuration.subnet?).map(IpAddr::V4))
    });
    gateways
        .filter_map(|gateway| peer::on_network(gateway).ok())
        .find(IpAddr::is_ipv4)
        .filter(|gateway| is_here(*gateway).is_ok())
}

/// The first address of a subnet such as `172.17.0.0/16`, which the engine gives its bridge by default.
fn first_address(subnet: &str) -> Option<Ipv4Addr> {
    let (network, _) = subnet.split_once('/')?;
    let network: Ipv4Addr = network.parse().ok()?;
    Some(Ipv4Addr::from(u32::from(network).checked_add(1)?))
}

/// The network mode of another container: `host`, `none`, or one with an address.
pub(super) fn mode_of(api: &Api, container: &str) -> Result<String, Reason> {
    let found = inspect(api, container)?;
    let mode = found.host_config.and_then(|config| config.network_mode);
    Ok(mode.unwrap_or_default())
}

/// The address and port on this machine of a published port.
pub(super) fn published(
    api: &Api,
    container: &str,
    key: &str,
    at: PublishedAt,
) -> Result<(IpAddr, u16), Reason> {
    let ports = inspect(api, container)?
        .network_settings
        .and_then(|settings| settings.ports)
        .unwrap_or_default();
    let bindings = ports.get(key).cloned().flatten().unwrap_or_default();
    bindings
        .into_iter()
        .filter_map(|binding| {
            let address: IpAddr = binding.host_ip?.parse().ok()?;
            Some((address, binding.host_port?.parse().ok()?))
        })
        .find(|(address, _)| match at {
            PublishedAt::Loopback => address.is_loopback(),
            PublishedAt::Bridge => peer::on_network(*address).is_ok(),
        })
        .ok_or_else(|| {
            Reason::NoPath(
                match at {
                    PublishedAt::Loopback => "the engine has published no port on 127.0.0.1",
                    PublishedAt::Bridge => "the engine's bridge is not reachable from here",
                }
                .into(),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(facts: &[(&str, &str)]) -> Option<String> {
        let facts = facts
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        elsewhere(&facts.collect())
    }

    #[test]
    fn remote_or_namespaced_engine_is_known_from_facts() {
        for facts in [
            ("engine.system", "Docker Desktop"),
            (
                "engine.security",
                "name=seccomp,profile=builtin name=rootless",
            ),
            ("engine.endpoint", "tcp://elsewhere:2375"),
            ("engine.kernel", "3.10.0-other"),
            ("engine.remote", "true"),
        ] {
            assert!(engine(&[facts]).is_some(), "{facts:?}");
        }
    }

    #[test]
    fn bridge_without_gateway_uses_first_subnet_address() {
        let address = first_address("172.17.0.0/16");
        assert_eq!(address, Some(Ipv4Addr::new(172, 17, 0, 1)));
        for text in ["fd00::/8", "172.17.0.0", "", "255.255.255.255/32"] {
            assert_eq!(first_address(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_engine_on_this_kernel_over_a_socket_is_here() {
        let kernel = files::read_text(Path::new("/proc/sys/kernel/osrelease")).unwrap();
        assert_eq!(engine(&[("engine.kernel", kernel.trim())]), None);
    }
}
