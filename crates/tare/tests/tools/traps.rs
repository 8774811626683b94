//! Tests the ways in which tools have misled their readers before, each made from a capture.

use tare::workload::{self, DecodeError, Remark, sanity};
use tare_model::{Reason, Sample};

use crate::golden::{Capture, capture, captures};

fn changed(workload: &str, name: &str, change: impl FnOnce(String) -> String) -> Capture {
    let mut capture = capture(workload, name);
    let before = String::from_utf8(capture.stdout.clone()).unwrap();
    let after = change(before.clone());
    assert_ne!(before, after, "the trap was not set");
    capture.stdout = after.into_bytes();
    capture
}

fn decode(capture: &Capture) -> Result<Vec<Sample>, DecodeError> {
    workload::find(&capture.workload)
        .unwrap()
        .decode(&capture.raw())
}

fn remarks(capture: &Capture) -> Vec<Remark> {
    workload::find(&capture.workload)
        .unwrap()
        .remarks(&capture.raw())
}

fn has(capture: &Capture, id: &str) -> bool {
    remarks(capture).iter().any(|remark| remark.id == id)
}

/// Returns a key's first number in text.
fn first_number(text: &str, key: &str) -> f64 {
    let (_, rest) = text.split_once(key).unwrap();
    let digits: String = rest
        .chars()
        .skip_while(|letter| !letter.is_ascii_digit())
        .take_while(|letter| letter.is_ascii_digit() || *letter == '.')
        .collect();
    digits.parse().unwrap()
}

#[test]
fn fio_rate_in_kib_is_not_read_as_bytes() {
    let whole = capture("fio", "3.33-randread");
    let text = String::from_utf8(whole.stdout.clone()).unwrap();
    let bytes = first_number(&text, "\"bw_bytes\"");
    let throughput = |capture: &Capture| {
        let samples = decode(capture).unwrap();
        samples
            .iter()
            .find(|sample| sample.metric.as_str() == "disk.fio-read.throughput")
            .unwrap()
            .observations[0]
    };
    assert_eq!(throughput(&whole), bytes);
    let old = changed("fio", "3.33-randread", |text| {
        text.lines()
            .filter(|line| !line.contains("bw_bytes"))
            .collect::<Vec<_>>()
            .join("\n")
    });
    let from_kib = throughput(&old);
    assert!((from_kib / bytes - 1.0).abs() < 1e-4, "{from_kib} {bytes}");
}

#[test]
fn fio_text_around_and_within_json_is_ignored() {
    let whole = decode(&capture("fio", "3.39-randread")).unwrap();
    let disturbed = changed("fio", "3.39-randread", |text| {
        let (head, tail) = text.split_at(text.find("  \"jobs\"").unwrap());
        format!(
            "note: both iodepth >= 1 and synchronous I/O engine are selected\n{{braces}} of a stranger\n\
             {head}fio: io_u error on file x: Input/output error\n{tail}\n\nRun status group 0 (all jobs):\n  {{\n"
        )
    });
    assert_eq!(decode(&disturbed).unwrap(), whole);
}

#[test]
fn fio_last_of_several_documents_is_used() {
    let whole = capture("fio", "3.39-randread");
    let several = changed("fio", "3.39-randread", |text| {
        format!("{}\n{text}", text.replace("\"iops\" : ", "\"iops\" : 1"))
    });
    assert_eq!(decode(&several), decode(&whole));
}

#[test]
fn fio_an_error_with_exit_status_0_is_no_reading() {
    let failed = changed("fio", "3.33-randread", |text| {
        text.replace("\"error\" : 0", "\"error\" : 28")
    });
    let error = decode(&failed).unwrap_err();
    assert!(matches!(error, DecodeError::Unsuccessful { .. }), "{error}");
    assert!(error.to_string().contains("error 28"), "{error}");
}

#[test]
fn fio_unknown_error_number_is_reported_as_is() {
    for code in ["4294967297", "-9223372036854775808"] {
        let failed = changed("fio", "3.33-randread", |text| {
            text.replace("\"error\" : 0", &format!("\"error\" : {code}"))
        });
        let error = decode(&failed).unwrap_err().to_string();
        assert!(
            error.contains(code) && !error.contains("(os error"),
            "{error}"
        );
    }
}

#[test]
fn fio_missing_device_counts_are_not_zero() {
    let whole = capture("fio", "3.39-randread");
    assert!(!has(&whole, sanity::PAGE_CACHE));
    let missing = changed("fio", "3.39-randread", |text| {
        let at = text.find(",\n  \"disk_util\"").unwrap();
        format!("{}\n}}\n", &text[..at])
    });
    assert!(decode(&missing).is_ok());
    assert!(
        !has(&missing, sanity::PAGE_CACHE),
        "{:?}",
        remarks(&missing)
    );
    let cached = changed("fio", "3.39-randread", |text| {
        let sectors = text.find("\"read_sectors\" : ").unwrap() + 17;
        let until = sectors + text[sectors..].find(',').unwrap();
        format!("{}0{}", &text[..sectors], &text[until..])
    });
    let doubts = remarks(&cached);
    let of_cache: Vec<_> = doubts
        .iter()
        .filter(|remark| remark.id == sanity::PAGE_CACHE)
        .collect();
    assert!(!of_cache.is_empty());
    assert!(of_cache.iter().all(|remark| {
        remark.concerns("disk.fio-read.rate")
            || remark
                .metric
                .is_some_and(|metric| metric.starts_with("disk.fio-read"))
    }));
    assert!(
        !of_cache
            .iter()
            .any(|remark| remark.concerns("disk.fio-write.rate"))
    );
}

#[test]
fn fio_slow_submission_is_effective_depth_about_1() {
    // The published run on a mounted folder: 70.81 ms in the submission, 31.58 µs until completion.
    let serial = changed("fio", "3.25-randread", |text| {
        let at = text.find("\"slat_ns\"").unwrap();
        let (head, tail) = text.split_at(at);
        let mean = tail.find("\"mean\" : ").unwrap() + 9;
        let until = mean + tail[mean..].find(',').unwrap();
        format!("{head}{}70810000.0{}", &tail[..mean], &tail[until..])
    });
    let doubt = remarks(&serial)
        .into_iter()
        .find(|remark| remark.id == sanity::SHALLOW_QUEUE)
        .unwrap();
    assert!(
        doubt.detail.contains("effective depth about 1 of 16"),
        "{doubt:?}"
    );
    assert!(!has(
        &capture("fio", "3.25-randread"),
        sanity::SHALLOW_QUEUE
    ));
}

#[test]
fn fio_another_generation_with_other_units_is_refused() {
    let old = changed("fio", "3.33-randread", |text| {
        text.replace("fio-3.33", "fio-2.16")
    });
    let error = decode(&old).unwrap_err().to_string();
    assert!(error.contains("fio-2.16"), "{error}");
}

#[test]
fn fio_blocked_engine_is_unavailable_not_failed() {
    let mut blocked = capture("fio", "3.33-no-such-engine");
    blocked.stdout.clear();
    blocked.stderr =
        b"fio: pid=7, err=1/file:engines/io_uring.c:1351, func=io_queue_init, error=Operation not permitted\n"
            .to_vec();
    assert_eq!(
        decode(&blocked).unwrap_err(),
        DecodeError::Unavailable(Reason::BlockedSyscall("io_uring_setup".into()))
    );
}

#[test]
fn iperf3_text_around_json_ignored_bad_value_refused() {
    let whole = capture("iperf3", "3.12-loopback");
    let around = changed("iperf3", "3.12-loopback", |text| {
        format!("warning: unable to set TCP_CONGESTION\n{text}\niperf3: interrupt\n")
    });
    assert_eq!(decode(&around), decode(&whole));
    for bad in ["nan", "-nan", "1e999", "-5", "\"fast\""] {
        let broken = changed("iperf3", "3.12-loopback", |text| {
            let at = text.find("\"sum_received\"").unwrap();
            let value = at + text[at..].find("\"bits_per_second\":").unwrap() + 18;
            let until = value + text[value..].find([',', '\n']).unwrap();
            format!("{}{bad}{}", &text[..value], &text[until..])
        });
        assert!(decode(&broken).is_err(), "{bad}");
    }
}

#[test]
fn iperf3_an_interval_of_the_wrong_length_is_a_gap() {
    assert!(!has(&capture("iperf3", "3.18-loopback"), sanity::GAPS));
    let gap = changed("iperf3", "3.18-loopback", |text| {
        let sum = text.find("\"sum\"").unwrap();
        let value = sum + text[sum..].find("\"seconds\":").unwrap() + 10;
        let until = value + text[value..].find(',').unwrap();
        format!("{}0.4{}", &text[..value], &text[until..])
    });
    assert!(has(&gap, sanity::GAPS), "{:?}", remarks(&gap));
}

/// Returns the capture with another number of retransmitted segments.
fn sent_again(number: &str) -> Capture {
    changed("iperf3", "3.12-loopback", |text| {
        let sum = text.find("\"sum_sent\"").unwrap();
        let value = sum + text[sum..].find("\"retransmits\":").unwrap() + 14;
        let until = value + text[value..].find(',').unwrap();
        format!("{}{number}{}", &text[..value], &text[until..])
    })
}

#[test]
fn iperf3_zero_retransmits_is_a_value() {
    let of = |number: &str| {
        let samples = decode(&sent_again(number)).unwrap();
        let mut found = samples.into_iter();
        let found = found.find(|sample| sample.metric.as_str() == "net.iperf3-resent.count");
        found.map(|sample| sample.observations)
    };
    assert_eq!(of("3"), Some(vec![3.0]));
    assert_eq!(of("0"), Some(vec![0.0]));
    assert_eq!(of("null"), None);
}

#[test]
fn iperf3_many_retransmits_are_remarked() {
    let many = sent_again("99999");
    assert!(has(&many, sanity::RETRANSMITS));
    assert!(!has(
        &capture("iperf3", "3.9-loopback"),
        sanity::RETRANSMITS
    ));
}

#[test]
fn stepwise_output_gives_course_unless_it_has_gaps() {
    let course = |capture: &Capture| {
        let workload = workload::find(&capture.workload).unwrap();
        workload.course(&capture.raw())
    };
    let stream = course(&capture("iperf3", "3.12-loopback")).unwrap();
    assert_eq!(stream.metric, "net.iperf3.throughput");
    assert_eq!((stream.axis, stream.step), ("s", 0.1));
    assert_eq!(stream.values.len(), 10);
    let least = stream.values.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(least, 655_405_891.885_250_3);
    let requests = course(&capture("ping", "20221126-loopback")).unwrap();
    assert_eq!(requests.axis, "request");
    assert!(!requests.values.is_empty());
    assert_eq!(
        course(&capture("ping", "20221126-loss-and-duplicates")),
        None
    );
    assert_eq!(course(&capture("iperf3", "3.12-server-died")), None);
    assert_eq!(course(&capture("fio", &name_of_first("fio"))), None);
}

/// Returns the name of a workload's first capture.
fn name_of_first(workload: &str) -> String {
    let mut all = captures().into_iter();
    all.find(|capture| capture.workload == workload)
        .unwrap()
        .name
}

#[test]
fn ping_counts_duplicates_apart_from_observations() {
    let capture = capture("ping", "20221126-loss-and-duplicates");
    assert_eq!(decode(&capture).unwrap()[0].observations.len(), 8);
    let doubts = remarks(&capture);
    let details: Vec<&str> = doubts.iter().map(|it| it.detail.as_str()).collect();
    for doubt in ["2 of 10 requests were not answered", "3 replies came twice"] {
        assert!(details.contains(&doubt), "{details:?}");
    }
}

#[test]
fn ping_replies_contradicting_the_summary_are_refused() {
    let less = changed("ping", "20210202-loopback", |text| {
        text.lines()
            .filter(|line| !line.contains("icmp_seq=4 "))
            .collect::<Vec<_>>()
            .join("\n")
    });
    assert!(matches!(decode(&less), Err(DecodeError::Garbled { .. })));
    let cut = changed("ping", "20210202-loopback", |text| {
        text[..text.find("---").unwrap()].to_owned()
    });
    assert!(matches!(decode(&cut), Err(DecodeError::Garbled { .. })));
}

#[test]
fn ping_of_other_makers_is_read_as_well() {
    let mut busybox = capture("ping", "20221126-loopback");
    busybox.stdout = b"PING 127.0.0.1 (127.0.0.1): 56 data bytes\n\
        64 bytes from 127.0.0.1: seq=0 ttl=64 time=0.050 ms\n\
        64 bytes from 127.0.0.1: seq=1 ttl=64 time=0.070 ms\n\n\
        --- 127.0.0.1 ping statistics ---\n\
        2 packets transmitted, 2 packets received, 0% packet loss\n\
        round-trip min/avg/max = 0.050/0.060/0.070 ms\n"
        .to_vec();
    assert_eq!(
        decode(&busybox).unwrap()[0].observations,
        [50_000.0, 70_000.0]
    );
    assert!(remarks(&busybox).is_empty(), "{:?}", remarks(&busybox));
}

#[test]
fn netcat_a_transfer_that_was_cut_short_is_no_reading() {
    let mut short = capture("netcat", "1.219-100-mib");
    let text = String::from_utf8(short.stderr).unwrap();
    short.stderr = text
        .replace("104857600 bytes", "104333312 bytes")
        .into_bytes();
    let error = decode(&short).unwrap_err();
    assert!(
        error.to_string().contains("104333312 of 104857600"),
        "{error}"
    );
}

#[test]
fn iozone_cell_of_one_timer_step_is_remarked() {
    let doubts = remarks(&capture("iozone", "3.489-one-step"));
    let short: Vec<&Remark> = doubts
        .iter()
        .filter(|remark| remark.id == sanity::SHORT_INTERVAL)
        .collect();
    assert_eq!(short.len(), 4, "{doubts:?}");
    assert!(short.iter().all(|remark| remark.metric.is_some()));
    let quantised = changed("iozone", "3.489-one-step", |text| {
        text.replace("22737791", "64000000")
    });
    let doubts = remarks(&quantised);
    let one = doubts
        .iter()
        .find(|remark| remark.detail.contains("one timer step"))
        .unwrap();
    assert!(one.concerns("disk.iozone-reread.throughput"));
}
