//! Restores the machine's network after a private engine, and creates a bridge for it if the usual one is in use.
//!
//! Limits: does not notice firewall changes by others meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Network, feed, run};

const BRIDGE: &str = "docker0";

/// State of the machine's network before the engine started.
#[derive(Debug)]
pub(super) struct Before {
    network: Network,
    had_bridge: bool,
    /// The bridge created for the engine, if the usual one is in use.
    pub(super) made: Option<String>,
    forwarding: Option<String>,
    rules: Option<String>,
}

impl Before {
    pub(super) fn look(network: Network) -> Self {
        Self {
            network,
            had_bridge: interface(BRIDGE).exists(),
            made: None,
            forwarding: fs::read_to_string(FORWARDING).ok(),
            rules: run("iptables-save", &[]).ok(),
        }
    }

    /// Creates a bridge with a free address if the usual one is in use.
    pub(super) fn make_bridge(&mut self, number: u32) -> Result<()> {
        let ports = fs::read_dir(interface(BRIDGE).join("brif"));
        let is_used = ports.is_ok_and(|mut ports| ports.next().is_some());
        if self.network == Network::Private || !is_used {
            return Ok(());
        }
        let routes = run("ip", &["-4", "route"])?;
        let free = (0..=255u8).map(|third| format!("10.213.{third}."));
        let free = free.into_iter().find(|start| !routes.contains(start));
        let address = format!(
            "{}1/24",
            free.context("every address in 10.213.0.0/16 is in use")?
        );
        let name = format!("dkr{}-{number}", std::process::id());
        run("ip", &["link", "add", "name", &name, "type", "bridge"])?;
        self.made = Some(name.clone());
        run("ip", &["address", "add", &address, "dev", &name])?;
        run("ip", &["link", "set", &name, "up"])?;
        Ok(())
    }

    pub(super) fn restore(&self) {
        if let (Some(made), Ok(now)) = (&self.made, run("iptables-save", &[])) {
            let _ = run("ip", &["link", "delete", made]);
            let mut kept: Vec<&str> = now.lines().collect();
            kept.retain(|line| !line.contains(made.as_str()));
            let _ = feed("iptables-restore", &(kept.join("\n") + "\n"));
        }
        if self.network == Network::Private || self.had_bridge {
            return;
        }
        let _ = run("ip", &["link", "delete", BRIDGE]);
        let had_chains = self
            .rules
            .as_deref()
            .is_some_and(|rules| rules.contains("DOCKER"));
        if let (Some(before), Ok(now), false) = (&self.rules, run("iptables-save", &[]), had_chains)
        {
            let _ = feed("iptables-restore", &rules_without_docker(before, &now));
        }
        if let Some(value) = &self.forwarding {
            let _ = fs::write(FORWARDING, value);
        }
    }
}

fn interface(name: &str) -> PathBuf {
    Path::new("/sys/class/net").join(name)
}

const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// Returns the current rules without those of Docker, and with the previous policy of FORWARD.
fn rules_without_docker(before: &str, now: &str) -> String {
    let policy = |rules: &str| {
        let mut table = "";
        for line in rules.lines() {
            if let Some(name) = line.strip_prefix('*') {
                table = name;
            }
            if table == "filter"
                && let Some(rest) = line.strip_prefix(":FORWARD ")
            {
                return rest.split(' ').next().map(str::to_owned);
            }
        }
        None
    };
    let forward = policy(before).unwrap_or_else(|| "ACCEPT".into());
    let mut kept = String::new();
    let mut table = "";
    for line in now.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        }
        if line.contains("DOCKER") || line.contains(BRIDGE) {
            continue;
        }
        if table == "filter" && line.starts_with(":FORWARD ") {
            kept.extend([":FORWARD ", &forward, " [0:0]"]);
        } else {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleanup_removes_only_docker_rules() {
        let before = "*filter\n:FORWARD ACCEPT [0:0]\n-A INPUT -p tcp -j ACCEPT\nCOMMIT\n";
        let now = "*filter\n:FORWARD DROP [3:9]\n:DOCKER - [0:0]\n-A INPUT -p tcp -j ACCEPT\n\
                   -A FORWARD -o docker0 -j DOCKER\nCOMMIT\n";
        let expected = "*filter\n:FORWARD ACCEPT [0:0]\n-A INPUT -p tcp -j ACCEPT\nCOMMIT\n";
        assert_eq!(rules_without_docker(before, now), expected);
    }
}
