//! Files of variables that the project file names (`env_file`): a small dotenv grammar.
//!
//! A line is blank, a comment (`# …`), or `NAME=VALUE`, with `export ` allowed before it. A name consists of
//! letters, digits and underscores and does not begin with a digit. An unquoted value ends at the end of the line
//! or before ` #`; surrounding whitespace is removed. In single quotes, everything is literal. In double quotes `\n`,
//! `\r`, `\t`, `\"`, `\\` and `\$` are escapes. Quoted values may span lines. Nothing is expanded: `$NAME` stays
//! `$NAME`. If a name occurs twice, the later line wins.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use patterm_store::private::{self, Refusal};
use thiserror::Error;

use crate::environment::{Environment, is_own};

/// The largest file that is read: execve would not accept more by default.
const FILE_BYTES: u64 = 6 << 20;

/// Why a file of variables cannot be used. It never contains values.
#[derive(Debug, Error)]
pub enum EnvFileError {
    /// It cannot be read.
    #[error("cannot read the env_file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Refusal,
    },
    /// It has a syntax error.
    #[error("{}:{line}: {why}", path.display())]
    SyntaxError {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: SyntaxError,
    },
}

/// A syntax error in a file of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SyntaxError {
    /// There is no `=`.
    #[error("a line must have the form NAME=VALUE")]
    NoEquals,
    /// The name is invalid.
    #[error(
        "a variable's name consists of letters, digits and underscores, does not begin with a digit, and \
         is directly followed by `=`"
    )]
    Name,
    /// The name is one of patterm's own.
    #[error("only patterm may set variables that begin with PATTERM_")]
    Own,
    /// A quote is not closed.
    #[error("the quotes that begin on this line are not closed")]
    Unclosed,
    /// Something follows the closing quote.
    #[error("only a comment may follow the closing quotes")]
    Rest,
    /// An escape is not known.
    #[error(r#"in double quotes, `\` must be followed by n, r, t, ", \ or $"#)]
    Escape,
    /// A value contains a NUL byte.
    #[error("a value cannot contain a NUL byte")]
    Zero,
}

/// Reads a file of variables.
pub fn read(path: &Path) -> Result<Environment, EnvFileError> {
    let read = private::read_regular(path, FILE_BYTES);
    let text = read.map_err(|source| EnvFileError::Unreadable { path: path.to_owned(), source })?;
    parse(&text).map_err(|(line, why)| EnvFileError::SyntaxError {
        path: path.to_owned(),
        line,
        why,
    })
}

/// The variables in a text, or the line of its first error.
fn parse(text: &[u8]) -> Result<Environment, (usize, SyntaxError)> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut environment = Environment::default();
    let mut rest = Rest { text, line: 1 };
    while !rest.text.is_empty() {
        let line = rest.line;
        if let Some((name, value)) = rest.variable().map_err(|why| (line, why))? {
            environment.insert(name, value);
        }
    }
    Ok(environment)
}

/// The part that is not parsed yet; it begins at the start of a line.
struct Rest<'a> {
    text: &'a [u8],
    line: usize,
}

impl<'a> Rest<'a> {
    /// Takes a line, and further ones if its value spans them.
    fn variable(&mut self) -> Result<Option<(OsString, OsString)>, SyntaxError> {
        let end = memchr::memchr(b'\n', self.text).unwrap_or(self.text.len());
        let line = self.text[..end].trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            self.skip(end);
            return Ok(None);
        }
        let begin = self.text[..end].len() - self.text[..end].trim_ascii_start().len();
        self.text = &self.text[begin..];
        if let Some(after) = self
            .text
            .strip_prefix(b"export")
            .filter(|after| after.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')))
        {
            // Not the end of the line: a name has to follow on the same one.
            let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            self.text = &after[blanks..];
        }
        let end = memchr::memchr(b'\n', self.text).unwrap_or(self.text.len());
        let equals = memchr::memchr(b'=', &self.text[..end]).ok_or(SyntaxError::NoEquals)?;
        let name = &self.text[..equals];
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if name.is_empty() || name[0].is_ascii_digit() || !name.iter().all(plain) {
            return Err(SyntaxError::Name);
        }
        let name = OsString::from_vec(name.to_owned());
        if is_own(&name) {
            return Err(SyntaxError::Own);
        }
        self.text = &self.text[equals + 1..];
        let value = self.value()?;
        if value.contains(&0) {
            return Err(SyntaxError::Zero);
        }
        Ok(Some((name, OsString::from_vec(value))))
    }

    fn value(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let blanks = self.text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match self.text.get(blanks) {
            Some(quote @ (b'"' | b'\'')) => {
                self.text = &self.text[blanks + 1..];
                self.quoted(*quote)
            }
            _ => {
                let end = memchr::memchr(b'\n', self.text).unwrap_or(self.text.len());
                let line = &self.text[..end];
                let is_comment = |at: &usize| {
                    line[*at] == b'#' && (*at == 0 || matches!(line[*at - 1], b' ' | b'\t'))
                };
                let value = &line[..(0..line.len()).find(is_comment).unwrap_or(line.len())];
                self.skip(end);
                Ok(value.trim_ascii().to_owned())
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Vec<u8>, SyntaxError> {
        let mut value = Vec::new();
        let mut bytes = self.text.iter().enumerate();
        let end = loop {
            let (at, byte) = bytes.next().ok_or(SyntaxError::Unclosed)?;
            match byte {
                _ if *byte == quote => break at,
                b'\\' if quote == b'"' => {
                    let (_, escaped) = bytes.next().ok_or(SyntaxError::Unclosed)?;
                    value.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'"' | b'\\' | b'$' => *escaped,
                        _ => return Err(SyntaxError::Escape),
                    });
                }
                _ => value.push(*byte),
            }
        };
        self.line += memchr::memchr_iter(b'\n', &self.text[..end]).count();
        self.text = &self.text[end + 1..];
        let end = memchr::memchr(b'\n', self.text).unwrap_or(self.text.len());
        let after = self.text[..end].trim_ascii();
        if !after.is_empty() && !after.starts_with(b"#") {
            return Err(SyntaxError::Rest);
        }
        self.skip(end);
        Ok(value)
    }

    /// Continues after the line that ends here.
    fn skip(&mut self, end: usize) {
        self.text = self.text.get(end + 1..).unwrap_or_default();
        self.line += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let parsed = parse(text.as_bytes()).unwrap();
            assert_eq!(parsed, expected.iter().copied().collect(), "{text:?}");
            assert!(parsed.iter().eq(expected.iter().map(|(n, v)| (n.as_ref(), v.as_ref()))));
        };
        check("", &[]);
        check("\u{feff}A=1\r\n\r\n# comment\n  B=2", &[("A", "1"), ("B", "2")]);
        check("export A=x y # z\nexported=1", &[("A", "x y"), ("exported", "1")]);
        check("A=\nB=#\nC=a#b\nD= 'x' # y", &[("A", ""), ("B", ""), ("C", "a#b"), ("D", "x")]);
        check(r#"A='$B \n "'"#, &[("A", r#"$B \n ""#)]);
        check(r#"A="a\nb\t\"\\\$C""#, &[("A", "a\nb\t\"\\$C")]);
        check(
            "KEY=\"-----BEGIN\nx=y\n-----END\"\nB=$KEY",
            &[("B", "$KEY"), ("KEY", "-----BEGIN\nx=y\n-----END")],
        );
        check("A=1\nA=2", &[("A", "2")]);
        let raw = parse(b"A=\xff\xfe").unwrap();
        assert_eq!(raw.get("A").unwrap().as_encoded_bytes(), b"\xff\xfe");
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        let check = |text: &str, line: usize, why: SyntaxError| {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), (line, why), "{text:?}");
        };
        check("A=1\nB", 2, SyntaxError::NoEquals);
        check("\n1A=1", 2, SyntaxError::Name);
        check("A =1", 1, SyntaxError::Name);
        check("=1", 1, SyntaxError::Name);
        check("A='x\ny'\nPATTERM_SOCKET=1", 3, SyntaxError::Own);
        check("A=1\nB='x\ny\n", 2, SyntaxError::Unclosed);
        check("A=\"x\\", 1, SyntaxError::Unclosed);
        check("A='x' y", 1, SyntaxError::Rest);
        check(r#"A="\q""#, 1, SyntaxError::Escape);
        check("A=a\0b", 1, SyntaxError::Zero);
        check("A=1\nexport \nB=2", 2, SyntaxError::NoEquals);
    }

    #[test]
    fn only_a_regular_file_is_read_and_errors_have_no_values() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".env");
        let error = read(&file).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the env_file /"), "{error}");
        assert!(read(dir.path()).unwrap_err().to_string().contains("not a regular file"));
        std::fs::write(&file, "A=1\nTOKEN secret").unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert_eq!(error, format!("{}:2: a line must have the form NAME=VALUE", file.display()));
    }
}
