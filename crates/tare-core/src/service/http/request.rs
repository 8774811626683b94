//! Describes and encodes a request: HTTP, a Redis command or a PostgreSQL query.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use tare_model::outcome::Bytes;

use super::{AnswerReader, postgres, redis};

/// A request to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// `GET`, `POST` …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Further headers. `Host`, `Connection` and `Content-Length` are the client's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body, or empty.
    #[serde(default)]
    pub body: Bytes,
    /// The words of a Redis command; if not empty, it is sent instead of HTTP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A PostgreSQL query; if not empty, it is sent instead of HTTP.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
}

impl Request {
    /// A plain `GET`.
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// A Redis command, from a line of words.
    ///
    /// # Errors
    /// The line has no words or unbalanced quotes.
    pub fn command(line: &str) -> Result<Self, String> {
        Ok(Self {
            command: redis::words(line)?,
            ..Self::get("/")
        })
    }

    /// A PostgreSQL query.
    ///
    /// # Errors
    /// The line contains a NUL byte.
    pub fn query(line: &str) -> Result<Self, String> {
        if line.contains('\0') {
            return Err(format!("`{}` is no query", line.escape_debug()));
        }
        Ok(Self {
            query: line.trim().to_owned(),
            ..Self::get("/")
        })
    }

    /// A reader for the response; `has_digest` if bodies are compared.
    pub fn reader(&self, has_digest: bool) -> AnswerReader {
        match (self.command.is_empty(), self.query.is_empty()) {
            (true, true) => AnswerReader::new(self.method == "HEAD", has_digest),
            (false, _) => AnswerReader::of_redis(has_digest),
            (_, false) => AnswerReader::of_postgres(has_digest),
        }
    }

    /// The bytes sent before the first request of a connection; empty unless it is PostgreSQL.
    pub fn session(&self) -> Vec<u8> {
        if self.query.is_empty() {
            Vec::new()
        } else {
            postgres::session()
        }
    }

    /// A short name: the command's first word, the query or the path.
    pub fn name(&self) -> &str {
        match (self.command.first(), self.query.as_str()) {
            (Some(word), _) => word,
            (None, "") => &self.path,
            (None, query) => query,
        }
    }

    /// Adds a header, `Name: value`.
    ///
    /// # Errors
    /// The line has no colon, or the request is invalid with it.
    pub fn add_header(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("`{}` is no `Name: value`", line.escape_debug()))?;
        self.headers
            .push((name.trim().to_owned(), value.trim().to_owned()));
        self.check()
    }

    /// Checks that the parts cannot break the framing of the request.
    ///
    /// # Errors
    /// Names the invalid part.
    pub fn check(&self) -> Result<(), String> {
        let is_token = |text: &str| {
            let is_ours =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            !text.is_empty() && text.bytes().all(is_ours)
        };
        if !is_token(&self.method) {
            return Err(format!("`{}` is no method", self.method.escape_debug()));
        }
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "`{}` is no path: it begins with `/` and has no spaces",
                self.path.escape_debug()
            ));
        }
        for (name, value) in &self.headers {
            if !is_token(name) || value.bytes().any(|byte| byte < b' ' && byte != b'\t') {
                return Err(format!("`{}` is no header", name.escape_debug()));
            }
            let is_clients = |own: &&&str| name.eq_ignore_ascii_case(own);
            if let Some(own) = ["Connection", "Content-Length", "Transfer-Encoding", "Host"]
                .iter()
                .find(is_clients)
            {
                return Err(format!("the header `{own}` is set by the client itself"));
            }
        }
        if !self.body.0.is_empty() && self.is_safe() {
            let method = &self.method;
            return Err(format!("a body belongs to POST or PUT, not to {method}"));
        }
        Ok(())
    }

    /// Encodes the request for `host`.
    pub fn to_bytes(&self, host: &str, keep_alive: bool) -> Vec<u8> {
        if !self.command.is_empty() {
            return redis::to_bytes(&self.command);
        }
        if !self.query.is_empty() {
            return postgres::to_bytes(&self.query);
        }
        let connection = if keep_alive { "keep-alive" } else { "close" };
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {host}\r\nConnection: {connection}\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !self.body.0.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.0.len());
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(&self.body.0);
        bytes
    }

    /// Whether the request can be sent again without side effects.
    pub fn is_safe(&self) -> bool {
        match (self.command.as_slice(), self.query.as_str()) {
            ([], "") => matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS"),
            ([], query) => postgres::is_reading(query),
            (words, _) => redis::is_reading(words),
        }
    }
}
