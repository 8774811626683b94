//! The two ends of `tcp-stream` and their protocol.
//!
//! The sender begins with eight bytes, the target duration of the timed work in nanoseconds, and continues with
//! arbitrary bytes until it closes its direction. The receiver then answers with the number of bytes after the first
//! eight, the number of slices, and for each slice its bytes and its duration; all numbers are 64 bits,
//! little-endian. Both ends are always the same build, so there is no version.
//! If arms are interleaved, the sender begins with `BURSTS` instead and sends bursts: the number of bytes, then that
//! many bytes. The receiver answers each burst with that number once it has read all of it, and the sender times from
//! its first write to this answer. Nothing is in flight between two bursts. An empty burst is the end.
//! The receiver is woken by whole buffers (`SO_RCVLOWAT`) and by the end: woken by every few segments, a stream over
//! the loopback lost a fifth of its rate here, most of it to the scheduler.
//! Limits: does not see where along the path bytes waited.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use tare_model::{Failure, whole_ns, whole_part, whole_size};

use crate::meter::{Meter, ProbeError};
use crate::slices::{Slice, Slices};
use crate::tcp::{LowWater, broken};

/// Size of each write and read: iperf3's default.
const CHUNK_BYTES: usize = 128 << 10;
/// Maximum number of slices; the receiver keeps no more.
const MOST_SLICES: usize = 1 << 16;

/// Marks a sender of bursts; no duration is that long.
const BURSTS: u64 = u64::MAX;
/// Sizes of the first burst of the calibration and of the longest burst.
const BURST_BYTES: std::ops::Range<u64> = 1 << 20..1 << 32;

/// Sends one burst per turn and returns their bytes and the time until the receiver had read the last of them.
pub fn send_in_turns(
    meter: &mut Meter,
    stream: &TcpStream,
    slice_ns: u64,
) -> Result<Vec<Slice>, ProbeError> {
    let chunk = vec![0x5au8; CHUNK_BYTES];
    let burst = |bytes: u64| -> Result<Slice, ProbeError> {
        let mut stream = stream;
        let failed = |error: &std::io::Error| broken("in a burst", error);
        let begin = Instant::now();
        stream
            .write_all(&bytes.to_le_bytes())
            .map_err(|error| failed(&error))?;
        let mut left = bytes;
        while left > 0 {
            let length = whole_size(left).min(CHUNK_BYTES);
            stream
                .write_all(&chunk[..length])
                .map_err(|error| failed(&error))?;
            left -= length as u64;
        }
        let count = number(stream)?;
        Ok(Slice {
            count,
            lasted_ns: whole_ns(begin.elapsed()),
        })
    };
    let mut ends = stream;
    ends.write_all(&BURSTS.to_le_bytes())
        .map_err(|error| broken("at its beginning", &error))?;
    let mut rounds = meter.rounds(1.0)?;
    let aim_ns = slice_ns as f64 * 0.9;
    // Warm-up: the window opens.
    burst(BURST_BYTES.start)?;
    let mut bytes = BURST_BYTES.start;
    loop {
        let lasted_ns = burst(bytes)?.lasted_ns as f64;
        if lasted_ns * 4.0 >= aim_ns || bytes >= BURST_BYTES.end {
            bytes = whole_part(bytes as f64 * aim_ns / lasted_ns)
                .clamp(BURST_BYTES.start, BURST_BYTES.end);
            break;
        }
        bytes *= 2;
    }
    let mut kept = Vec::new();
    while rounds.another(meter)? {
        burst(meter.uncounted(bytes))?;
        let slice = burst(bytes)?;
        if slice.count != bytes {
            return Err(ProbeError::Failed(Failure::Void(format!(
                "{bytes} bytes were sent and {} arrived",
                slice.count
            ))));
        }
        kept.push(slice);
    }
    ends.write_all(&0u64.to_le_bytes())
        .map_err(|error| broken("at its end", &error))?;
    Ok(kept)
}

/// Receives bursts until the empty one, and answers each with the number of its bytes.
fn receive_bursts(mut stream: &TcpStream) -> Result<(), ProbeError> {
    let mut buffer = vec![0u8; CHUNK_BYTES];
    let mut low_water = LowWater::new(stream);
    loop {
        low_water.set(1)?;
        let length = number(stream)?;
        if length == 0 {
            return Ok(());
        }
        let mut left = length;
        while left > 0 {
            let most = whole_size(left).min(CHUNK_BYTES);
            low_water.set(if left >= 2 * CHUNK_BYTES as u64 {
                CHUNK_BYTES
            } else {
                1
            })?;
            match stream.read(&mut buffer[..most]) {
                Ok(0) => return Err(broken("in a burst", &ErrorKind::UnexpectedEof.into())),
                Ok(read) => left -= read as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(broken("in a burst", &error)),
            }
        }
        stream
            .write_all(&length.to_le_bytes())
            .map_err(|error| broken("while the sender was answered", &error))?;
    }
}

/// Sends for `share_ns` after a warm-up, and fetches the receiver's counts.
pub fn send(mut stream: &TcpStream, share_ns: u64) -> Result<Vec<Slice>, ProbeError> {
    let chunk = vec![0x5au8; CHUNK_BYTES];
    // An eighth more: the first slice is warm-up, and the last one is rarely complete.
    let aim = Duration::from_nanos(share_ns + share_ns / 8);
    stream
        .write_all(&share_ns.to_le_bytes())
        .map_err(|error| broken("at its beginning", &error))?;
    let begin = Instant::now();
    let mut sent_bytes = 0u64;
    while begin.elapsed() < aim {
        match stream.write(&chunk) {
            Ok(length) => sent_bytes += length as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(broken(&format!("after {sent_bytes} bytes"), &error));
            }
        }
    }
    stream
        .shutdown(Shutdown::Write)
        .map_err(|error| broken("at its end", &error))?;
    let arrived_bytes = number(stream)?;
    if arrived_bytes != sent_bytes {
        return Err(ProbeError::Failed(Failure::Void(format!(
            "{sent_bytes} bytes were sent and {arrived_bytes} arrived"
        ))));
    }
    let n_slices = number(stream)?;
    if n_slices > MOST_SLICES as u64 {
        return Err(ProbeError::Failed(Failure::Garbled(format!(
            "the receiver announced {n_slices} slices"
        ))));
    }
    (0..n_slices)
        .map(|_| {
            let slice = Slice {
                count: number(stream)?,
                lasted_ns: number(stream)?,
            };
            if slice.count == 0 || slice.lasted_ns == 0 {
                return Err(ProbeError::Failed(Failure::Garbled(
                    "the receiver reported an empty slice".into(),
                )));
            }
            Ok(slice)
        })
        .collect()
}

fn number(mut stream: &TcpStream) -> Result<u64, ProbeError> {
    let mut bytes = [0u8; 8];
    stream
        .read_exact(&mut bytes)
        .map_err(|error| broken("before the receiver had answered", &error))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Receives until the sender has closed its direction, and sends it the counts.
pub fn receive(mut stream: &TcpStream) -> Result<(), ProbeError> {
    let mut buffer = vec![0u8; CHUNK_BYTES];
    let aim_ns = number(stream)?;
    if aim_ns == BURSTS {
        return receive_bursts(stream);
    }
    LowWater::new(stream).set(CHUNK_BYTES)?;
    let mut slices = Slices::start(aim_ns);
    let mut arrived_bytes = 0u64;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                arrived_bytes += length as u64;
                // The sender decides when to stop, so ignore the result.
                slices.advance(arrived_bytes);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(broken(&format!("after {arrived_bytes} bytes"), &error));
            }
        }
    }
    let slices = slices.into_inner();
    let kept = &slices[..slices.len().min(MOST_SLICES)];
    let numbers = [arrived_bytes, kept.len() as u64]
        .into_iter()
        .chain(kept.iter().flat_map(|slice| [slice.count, slice.lasted_ns]));
    let answer: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    stream
        .write_all(&answer)
        .map_err(|error| broken("while the sender was answered", &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp;

    #[test]
    fn the_slices_hold_no_more_bytes_than_were_sent() {
        let (listener, address) = tcp::listen_on_loopback().unwrap();
        let slices = tcp::with_server(
            move || receive(&tcp::accept(&listener)?),
            || send(&tcp::connect(address)?, 10_000_000),
        )
        .unwrap();
        assert!(!slices.is_empty());
        assert!(slices.iter().all(|slice| slice.lasted_ns >= 100_000));
    }

    /// Sends to a receiver that reads to the end and answers with these numbers.
    fn answered(numbers: &'static [u64]) -> Result<Vec<Slice>, ProbeError> {
        let (listener, address) = tcp::listen_on_loopback().unwrap();
        tcp::with_server(
            move || {
                let mut stream = tcp::accept(&listener)?;
                let arrived_bytes = std::io::copy(&mut stream, &mut std::io::sink()).unwrap() - 8;
                for number in numbers {
                    let number = if *number == u64::MAX {
                        arrived_bytes
                    } else {
                        *number
                    };
                    stream.write_all(&number.to_le_bytes()).unwrap();
                }
                Ok(())
            },
            || send(&tcp::connect(address)?, 1_000_000),
        )
    }

    #[test]
    fn burst_of_any_length_and_chunking_is_answered() {
        let (listener, address) = tcp::listen_on_loopback().unwrap();
        let lengths = [
            1,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            2 * CHUNK_BYTES + 1,
            777_777,
        ];
        tcp::with_server(
            move || receive(&tcp::accept(&listener)?),
            || {
                let stream = tcp::connect(address)?;
                let mut way = &stream;
                way.write_all(&BURSTS.to_le_bytes()).unwrap();
                let bytes = vec![0; 777_777];
                for piece in [1_000_000, 100_000, 60_001, 4_096] {
                    for length in lengths {
                        way.write_all(&(length as u64).to_le_bytes()).unwrap();
                        for part in bytes[..length].chunks(piece) {
                            way.write_all(part).unwrap();
                            // Lets the receiver read it before more arrives.
                            std::thread::yield_now();
                        }
                        assert_eq!(number(&stream)?, length as u64, "{length} by {piece}");
                    }
                }
                way.write_all(&0u64.to_le_bytes()).unwrap();
                Ok(())
            },
        )
        .unwrap();
    }

    #[test]
    fn lost_bytes_or_garbled_answer_gives_no_values() {
        let all = u64::MAX;
        let slice = Slice {
            count: 5,
            lasted_ns: 7,
        };
        assert_eq!(answered(&[u64::MAX, 1, 5, 7]), Ok(vec![slice]));
        assert!(matches!(
            answered(&[3, 1, 5, 7]),
            Err(ProbeError::Failed(Failure::Void(_)))
        ));
        for numbers in [
            &[u64::MAX, 1 << 40][..],
            &[u64::MAX, 1, 0, 7],
            &[u64::MAX, 1, 5, 0],
        ] {
            assert_eq!(numbers[0], all);
            assert!(
                matches!(
                    answered(numbers),
                    Err(ProbeError::Failed(Failure::Garbled(_)))
                ),
                "{numbers:?}"
            );
        }
        for numbers in [&[][..], &[u64::MAX], &[u64::MAX, 2, 5, 7]] {
            assert!(
                matches!(
                    answered(numbers),
                    Err(ProbeError::Failed(Failure::Probe(_)))
                ),
                "{numbers:?}"
            );
        }
    }
}
