//! Builds the sequence of requests: a single one, or a list of paths from a file of addresses or a server's log.
//!
//! Every server gets the same sequence. Only `GET` lines of an access log (common format) are used, so that writes
//! are not replayed.

use super::http::Request;

/// The maximum number of requests in a mix.
const MOST: usize = 100_000;

/// Turns a text into requests that differ from `like` only in the path. The text has one address or path a line, or
/// is an access log.
///
/// # Errors
/// A line is invalid, or there are no requests or too many.
pub fn requests(text: &str, like: &Request) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let path = match line.split_once('"') {
            Some((_, logged)) => match logged.split_once(' ') {
                Some(("GET", rest)) => rest.split([' ', '"']).next().unwrap_or_default(),
                _ => continue,
            },
            None => path_of(line),
        };
        let request = Request {
            path: path.to_owned(),
            ..like.clone()
        };
        let of_line = |error| format!("line {}: {error}", number + 1);
        request.check().map_err(of_line)?;
        requests.push(request);
        if requests.len() > MOST {
            return Err(format!("there are more than {MOST} requests in it"));
        }
    }
    if requests.is_empty() {
        return Err("there is no request in it: one path or address a line, or an access log with `\"GET /path HTTP/1.1\"`".to_owned());
    }
    Ok(requests)
}

/// Turns a text with one request a line, such as Redis commands, into requests; `of` parses a line.
///
/// # Errors
/// A line is invalid, or there are no lines or too many.
pub fn lines(
    text: &str,
    of: impl Fn(&str) -> Result<Request, String>,
) -> Result<Vec<Request>, String> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let of_line = |(number, line): (usize, &str)| {
        of(line).map_err(|error| format!("line {}: {error}", number + 1))
    };
    let requests: Vec<Request> = lines.map(of_line).collect::<Result<_, _>>()?;
    match requests.len() {
        0 => Err("there is nothing in it: one a line".to_owned()),
        1..=MOST => Ok(requests),
        _ => Err(format!("there are more than {MOST} lines in it")),
    }
}

/// The path of an address; a path is returned unchanged.
fn path_of(address: &str) -> &str {
    let Some((_, rest)) = address.split_once("://") else {
        return address;
    };
    rest.find('/').map_or("/", |at| &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Result<Vec<String>, String> {
        let mix = requests(text, &Request::get("/"))?;
        Ok(mix.into_iter().map(|request| request.path).collect())
    }

    #[test]
    fn mixes_come_from_lists_and_from_access_logs() {
        let list = "# pages\n/a\nhttp://x:80/b?c=d\nhttp://x\n\n";
        assert_eq!(paths(list).unwrap(), ["/a", "/b?c=d", "/"]);
        let log = concat!(
            "1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"GET /a?b HTTP/1.1\" 200 2326\n",
            "1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"POST /form HTTP/1.1\" 200 1\n",
            "1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"GET /c HTTP/1.1\" 200 5 \"-\" \"curl\"\n",
        );
        assert_eq!(paths(log).unwrap(), ["/a?b", "/c"]);
    }

    #[test]
    fn commands_are_lines_of_words() {
        let commands = |text| lines(text, Request::command);
        let found = commands("SET k 'a b'\n\nGET k\n").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name(), found[0].is_safe()), ("SET", false));
        assert!(found[1].is_safe() && found[1].reader(false).is_untouched());
        assert!(commands("\n").unwrap_err().contains("nothing in it"));
        assert!(commands("GET k\nSET 'x\n").unwrap_err().contains("line 2"));
        let found = lines("SELECT 1\n", Request::query).unwrap();
        assert_eq!((found[0].name(), found[0].is_safe()), ("SELECT 1", true));
    }

    #[test]
    fn a_text_without_requests_is_refused() {
        for (text, said) in [
            ("", "no request"),
            ("x \"POST / HTTP/1.1\" 200 1\n", "no request"),
            ("/a\nnot a path\n", "line 2"),
        ] {
            let error = paths(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
