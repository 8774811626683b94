//! What concurrent instances of one arm share: their numbers, and a network.
//!
//! A number is taken at a start and free again after its instance has been stopped, so a restarted arm has the same
//! addresses as before. The network is the agent's `hub`, a bridge in its own namespace; its addresses are from
//! 198.51.100.0/24, which RFC 5737 reserves, so that they hide no address that a workload reaches.
//! Limits: instances of other arms have separate numbers and networks.
//! Not a driver; drivers use it.

use crate::env::prelude::*;

use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc;

use tare_model::launch::{RUN_VARIABLE, SiblingLink};

use super::channel::{LAST_WORDS_LIMIT, no_pipes, wait_for_last_words};
use crate::cx::aside;

/// Maximum number of instances on one network.
const PLACES: u8 = 254;
/// Length of the network prefix, bits.
pub(super) const PREFIX_BITS: u8 = 24;

/// The numbers of an arm's running instances.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers(Arc<Mutex<BTreeSet<u32>>>);

impl Numbers {
    /// Takes the smallest number, from 1, that no running instance has.
    pub(super) fn take(&self) -> Number {
        let mut taken = locked(&self.0);
        let number = (1..=u32::MAX)
            .find(|number| !taken.contains(number))
            .expect("there are more numbers than instances");
        taken.insert(number);
        Number {
            number,
            taken: self.0.clone(),
        }
    }
}

/// An instance's number among its siblings; free again when dropped.
#[derive(Debug)]
pub(super) struct Number {
    number: u32,
    taken: Arc<Mutex<BTreeSet<u32>>>,
}

impl Number {
    /// Returns the number, from 1.
    pub(super) fn get(&self) -> u32 {
        self.number
    }

    /// Returns the instance's separate loopback address, for instances that share the host's network.
    pub(super) fn loopback(&self) -> Ipv4Addr {
        let [_, high, middle, low] = self.number.to_be_bytes();
        Ipv4Addr::new(127, high, middle, low)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut taken = locked(&self.taken);
        taken.remove(&self.number);
    }
}

/// A network between instances; removed when dropped.
pub(super) struct Hub {
    running: Box<dyn Running>,
    /// Closing it ends the hub.
    _input: Box<dyn Write + Send>,
}

impl Hub {
    /// Creates a network. Needs root.
    pub(super) fn start(cx: &Context<'_>) -> Result<Self> {
        let command = cx
            .agent
            .command(["hub"])
            .variable(RUN_VARIABLE, cx.run.as_str());
        let mut running = cx.exec.spawn(&command)?;
        let (Some(input), Some(output)) = (running.take_stdin(), running.take_stdout()) else {
            return Err(no_pipes().into());
        };
        let (sender, receiver) = mpsc::channel();
        // Without a thread, `ready` is not received.
        let _ = aside(move || {
            let mut line = String::new();
            // On a failure, the line is not `ready`.
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        match receiver.recv_timeout(CONTROL_LIMIT) {
            Ok(line) if line.trim() == "ready" => Ok(Self {
                running,
                _input: input,
            }),
            Ok(_) => {
                wait_for_last_words(running.as_mut(), LAST_WORDS_LIMIT);
                Err(EnvError::denied(
                    escaped(running.stderr_tail()),
                    "run as root",
                ))
            }
            Err(_) => Err(EnvError::Timeout {
                phase: "making a network between instances".to_owned(),
                limit: CONTROL_LIMIT,
            }),
        }
    }
}

/// The network of an arm's instances: created on first use; a failure is kept with its reason.
#[derive(Default)]
pub(super) struct Gathering {
    nodes: u32,
    hub: Option<Result<Hub, Reason>>,
}

impl Gathering {
    /// Sets the number of instances wanted on one network.
    pub(super) fn want(&mut self, nodes: u32) {
        self.nodes = nodes;
    }

    /// Whether more than one instance is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.nodes > 1
    }

    /// Returns the address of an instance, or why it has none.
    pub(super) fn link(
        &mut self,
        cx: &Context<'_>,
        number: &Number,
    ) -> Result<SiblingLink, Reason> {
        if !self.is_wanted() {
            return Err(no_path(
                "one instance alone was asked for, so no network joins it to others",
            ));
        }
        let hub = self
            .hub
            .get_or_insert_with(|| Hub::start(cx).map_err(|error| no_path(error.to_string())));
        let hub = hub.as_ref().map_err(Clone::clone)?;
        let number = number.get();
        let place = u8::try_from(number).ok().filter(|place| *place <= PLACES);
        let full = || no_path(format!("one network joins at most {PLACES} instances"));
        Ok(SiblingLink {
            hub: hub.running.id(),
            number,
            address: Ipv4Addr::new(198, 51, 100, place.ok_or_else(full)?),
            prefix_bits: PREFIX_BITS,
        })
    }

    /// Removes the network.
    pub(super) fn end(&mut self) {
        self.hub = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_number_is_reused_after_drop() {
        let numbers = Numbers::default();
        let first = numbers.take();
        let second = numbers.take();
        assert_eq!((first.get(), second.get()), (1, 2));
        drop(first);
        let third = numbers.take();
        assert_eq!(third.get(), 1);
        assert_eq!(second.loopback(), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(third.loopback(), Ipv4Addr::LOCALHOST);
    }
}
