//! tare-agent.
