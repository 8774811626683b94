//! Says goodbye to an agent and waits briefly for its answer.

use crate::env::prelude::*;

use tare_model::whole_ns;

use crate::cx::{Cancel, Clock};

/// How long an agent may take to say goodbye, whatever else it sends.
const FAREWELL_LIMIT: Duration = Duration::from_millis(300);

/// Says goodbye to an agent and waits briefly for its answer; returns whether it came. Does not wait once a stop was
/// requested twice.
pub(crate) fn farewell(clock: &dyn Clock, cancel: &Cancel, channel: &mut dyn Channel) -> bool {
    if cancel.is_insisted() || channel.send(&Request::Bye).is_err() {
        return false;
    }
    let end_ns = clock.now_ns() + whole_ns(FAREWELL_LIMIT);
    loop {
        let left_ns = end_ns.saturating_sub(clock.now_ns());
        if left_ns == 0 || cancel.is_insisted() {
            return false;
        }
        match channel.receive(Duration::from_nanos(left_ns)) {
            Ok(Reply::Bye) => return true,
            // A reply that was still pending.
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::SystemClock;

    /// A peer that always has something to say, and never says goodbye.
    struct Talker {
        n_asked: usize,
    }

    impl Channel for Talker {
        fn send(&mut self, _request: &Request) -> Result<(), ChannelError> {
            self.n_asked += 1;
            Ok(())
        }

        fn receive(&mut self, _limit: Duration) -> Result<Reply, ChannelError> {
            Ok(Reply::Ready { trial: 0 })
        }
    }

    #[test]
    fn farewell_to_a_talker_ends_by_itself() {
        let clock = SystemClock::default();
        let cancel = Cancel::new();
        let mut talker = Talker { n_asked: 0 };
        assert!(!farewell(&clock, &cancel, &mut talker));
        cancel.request();
        assert!(!farewell(&clock, &cancel, &mut talker));
        assert_eq!(
            talker.n_asked, 2,
            "who asks once to stop lets it say goodbye"
        );
        cancel.request();
        assert!(!farewell(&clock, &cancel, &mut talker));
        assert_eq!(talker.n_asked, 2, "who insists does not wait for it");
    }
}
