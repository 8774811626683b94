//! Asks an HTTP server with Tare's client and prints how many requests a second were answered, to compare with `wrk`.
//!
//! `cargo run --release -p tare --example http_rate -- ADDRESS CONNECTIONS MILLISECONDS`.

#[cfg(target_os = "linux")]
#[allow(clippy::print_stdout, reason = "a program of its own that prints")]
fn main() -> anyhow::Result<()> {
    use tare::cx::{Cancel, SystemClock};
    use tare::service::client::{Client, SliceLength};
    use tare::service::http::Request;
    use tare::service::request_plan::RequestPlan;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, connections, ms] = &arguments[..] else {
        anyhow::bail!("usage: http_rate ADDRESS CONNECTIONS MILLISECONDS");
    };
    let asked = RequestPlan {
        connections: connections.parse()?,
        ..RequestPlan::closed_loop(Request::get("/")).map_err(anyhow::Error::msg)?
    };
    let (clock, cancel) = (SystemClock::default(), Cancel::new());
    let mut client = Client::new(&clock, &cancel, &[address.parse()?], asked);
    let slice = client.slice(0, SliceLength::For(ms.parse::<u64>()? * 1_000_000))?;
    if let Some(unexpected) = slice.unexpected {
        anyhow::bail!(unexpected);
    }
    let count = slice.latencies().count() as f64;
    println!("{:.1}", count / slice.counted_ns as f64 * 1e9);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
