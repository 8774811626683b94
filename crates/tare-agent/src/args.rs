//! Parses a probe's arguments. The host has checked them; the agent checks them again.

use std::net::IpAddr;

use tare_model::{Failure, Params, Value};

use crate::meter::ProbeError;

/// Returns the integer under `name`, or `default` if there is none.
///
/// # Errors
/// `Failed` if it is not an integer or is outside `range`.
pub fn whole(
    params: &Params,
    name: &str,
    default: i64,
    range: std::ops::RangeInclusive<i64>,
) -> Result<u64, ProbeError> {
    let value = match params.value(name) {
        None => default,
        Some(Value::Int(value)) => *value,
        Some(other) => {
            return Err(refused(format!(
                "argument `{name}` is `{other}`, which is no whole number"
            )));
        }
    };
    if !range.contains(&value) {
        return Err(refused(format!(
            "argument `{name}` is {value}, outside of {} to {}",
            range.start(),
            range.end()
        )));
    }
    u64::try_from(value)
        .map_err(|_| refused(format!("argument `{name}` is {value}, which is negative")))
}

/// Returns the port under `port`, at least `least`, or 0 if there is none.
///
/// # Errors
/// `Failed` if it is not an integer or not a valid port.
#[inline(never)]
pub fn port(params: &Params, least: u16) -> Result<u16, ProbeError> {
    let port = whole(params, "port", 0, least.into()..=u16::MAX.into())?;
    Ok(u16::try_from(port).unwrap_or(u16::MAX))
}

/// Returns the address under `name`, if there is one.
///
/// # Errors
/// `Failed` if it is not an IP address.
pub fn address(params: &Params, name: &str) -> Result<Option<IpAddr>, ProbeError> {
    let parsed = |text: &str| {
        text.parse().map_err(|_| {
            refused(format!(
                "argument `{name}` is `{}`, which is no IP address",
                text.escape_default()
            ))
        })
    };
    params.text(name).map(parsed).transpose()
}

/// Builds the failure that reports a wrong argument.
pub fn refused(problem: String) -> ProbeError {
    ProbeError::Failed(Failure::Probe(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_out_of_range_or_wrong_type_is_an_error() {
        let params = Params::new().with("depth", 300i64).with("text", "4");
        assert_eq!(whole(&params, "absent", 4, 1..=8), Ok(4));
        assert_eq!(whole(&params, "depth", 4, 1..=300), Ok(300));
        assert!(whole(&params, "depth", 4, 1..=256).is_err());
        assert!(whole(&params, "text", 4, 1..=256).is_err());
        assert!(whole(&params.with("less", -1i64), "less", 4, -5..=5).is_err());
        assert_eq!(port(&Params::new(), 0), Ok(0));
        assert!(port(&Params::new(), 1).is_err());
        assert_eq!(port(&Params::new().with("port", 65_535i64), 1), Ok(65_535));
        assert!(port(&Params::new().with("port", 65_536i64), 1).is_err());
    }
}
