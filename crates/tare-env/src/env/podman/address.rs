//! The addresses of a container and this machine for each other.
//!
//! A rootful bridge has addresses that both sides can use. A rootless container's network is behind a user-space
//! program, without an address that this machine could reach; that is reported as a reason, never as an address that
//! does not answer.
//! Limits: firewalls of this machine are not seen.

use crate::env::prelude::*;

use std::net::TcpListener;

use super::super::peer;

pub(super) const ROOTLESS: &str = "a rootless container's network lies behind a program in user space (slirp4netns or pasta), \
     which gives it no address that the host can reach; `network = \"host\"` has one";

/// Returns both ends on the host's network.
pub(super) fn loopback() -> (IpAddr, IpAddr) {
    (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into())
}

/// Returns the addresses of the container and its gateway, from `podman container inspect`.
fn named(container: &Value) -> Result<(IpAddr, IpAddr), Reason> {
    let settings = &container["NetworkSettings"];
    let networks = settings["Networks"].as_object();
    let networks = networks.into_iter().flat_map(|networks| networks.values());
    let parse = |json: &Value| json.as_str().and_then(|text| text.parse::<IpAddr>().ok());
    let found = std::iter::once(settings)
        .chain(networks)
        .find_map(|place| parse(&place["IPAddress"]).zip(parse(&place["Gateway"])));
    let Some((own, gateway)) = found else {
        return Err(no_path("the container has no address on a bridge"));
    };
    Ok((peer::on_network(own)?, peer::on_network(gateway)?))
}

/// Like `named`, if the gateway is this machine: checked by binding a socket to it.
pub(super) fn bridge(container: &Value) -> Result<(IpAddr, IpAddr), Reason> {
    let (own, gateway) = named(container)?;
    TcpListener::bind((gateway, 0)).map_err(|error| {
        no_path(format!(
            "podman's bridge has the gateway {gateway}, which is not this machine ({error})"
        ))
    })?;
    Ok((own, gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_found_with_or_without_named_network() {
        let place = json!({"IPAddress": "10.88.0.7", "Gateway": "10.88.0.1"});
        let plain = json!({"NetworkSettings": place});
        let by_network =
            json!({"NetworkSettings": {"IPAddress": "", "Networks": {"podman": place}}});
        for container in [plain, by_network] {
            let (own, gateway) = named(&container).unwrap();
            assert_eq!(own.to_string(), "10.88.0.7");
            assert_eq!(gateway.to_string(), "10.88.0.1");
        }
    }

    #[test]
    fn invalid_gateway_address_is_not_listened_on() {
        for bad in ["0.0.0.0", "::", "127.0.0.1", "224.0.0.1"] {
            let place = json!({"IPAddress": "10.88.0.7", "Gateway": bad});
            let container = json!({"NetworkSettings": place});
            assert!(bridge(&container).is_err(), "{bad}");
            let place = json!({"IPAddress": bad, "Gateway": "10.88.0.1"});
            assert!(named(&json!({"NetworkSettings": place})).is_err(), "{bad}");
        }
    }

    #[test]
    fn remote_gateway_or_missing_address_is_no_path() {
        let elsewhere =
            json!({"NetworkSettings": {"IPAddress": "198.51.100.2", "Gateway": "198.51.100.1"}});
        assert!(
            matches!(bridge(&elsewhere), Err(Reason::NoPath(why)) if why.contains("not this machine"))
        );
        assert!(matches!(bridge(&Value::Null), Err(Reason::NoPath(_))));
    }
}
