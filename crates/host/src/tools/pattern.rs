//! Regular expressions from callers: linear in time, limited in size, with the position of an
//! error.

use regex::RegexBuilder;
use regex_syntax::hir::{Hir, HirKind};

use super::error::ToolError;

/// The longest pattern: a longer one is a mistake or an attack.
const PATTERN_BYTES: usize = 4 << 10;

/// The memory limit of a compiled pattern.
const COMPILED_BYTES: usize = 4 << 20;

/// Compiles a pattern for text.
pub(super) fn compile(pattern: &str) -> Result<regex::Regex, ToolError> {
    check_length(pattern)?;
    let built = RegexBuilder::new(pattern).size_limit(COMPILED_BYTES).build();
    built.map_err(|e| refused(&e))
}

/// Checks a pattern on a command line before it is sent to a server; the error says why it cannot be used.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let checked = check_one_line(pattern).and_then(|()| compile(pattern).map(drop));
    checked.map_err(|error| error.message.trim_start_matches("`pattern` ").to_owned())
}

/// Compiles a pattern for bytes, in which `^` and `$` match at line ends, including `\r\n`.
pub(super) fn compile_bytes(pattern: &str) -> Result<regex::bytes::Regex, ToolError> {
    check_length(pattern)?;
    let mut builder = regex::bytes::RegexBuilder::new(pattern);
    let built = builder.size_limit(COMPILED_BYTES).multi_line(true).crlf(true).build();
    built.map_err(|e| refused(&e))
}

/// Refuses a pattern that could only match across lines, because lines are matched one by one.
pub(super) fn check_one_line(pattern: &str) -> Result<(), ToolError> {
    check_length(pattern)?;
    // An invalid pattern is refused when it is compiled, with the position of the error.
    if !regex_syntax::parse(pattern).is_ok_and(|hir| requires_line_end(&hir)) {
        return Ok(());
    }
    let why = "contains a line break, but lines are matched one by one, so it would never match; use \
        a pattern for the last line, or match one line after the other";
    Err(ToolError::invalid("pattern", why))
}

/// Whether every match contains a line break.
fn requires_line_end(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(class) => class.literal().as_deref() == Some(b"\n"),
        HirKind::Repetition(repetition) => repetition.min > 0 && requires_line_end(&repetition.sub),
        HirKind::Capture(capture) => requires_line_end(&capture.sub),
        HirKind::Concat(parts) => parts.iter().any(requires_line_end),
        HirKind::Alternation(parts) => parts.iter().all(requires_line_end),
        HirKind::Empty | HirKind::Look(_) => false,
    }
}

fn check_length(pattern: &str) -> Result<(), ToolError> {
    if pattern.len() <= PATTERN_BYTES {
        return Ok(());
    }
    let why = format_args!("has {} bytes; at most {PATTERN_BYTES} are allowed", pattern.len());
    Err(ToolError::invalid("pattern", why))
}

fn refused(error: &regex::Error) -> ToolError {
    ToolError::invalid("pattern", format_args!("does not compile: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_position_and_the_size_is_limited() {
        let error = compile("a(b").unwrap_err();
        assert!(error.message.contains("a(b\n     ^"), "{}", error.message);
        assert!(compile(&"a".repeat(5_000)).is_err());
        let error = compile("(a{1000}){1000}").unwrap_err();
        assert!(error.message.contains("size limit"), "{}", error.message);
        assert!(compile("ready in \\d+").is_ok());
    }

    #[test]
    fn a_pattern_of_several_lines_is_refused_with_advice() {
        for pattern in [
            "a\\nb",
            "a\nb",
            "[^x]\\n",
            "a\\n+b",
            "a\\x0ab",
            "a[\\n]b",
            "(a\\n){2}b",
            "(?:a\\n|b\\n)c",
        ] {
            let error = check_one_line(pattern).unwrap_err();
            assert!(
                error.message.contains("pattern for the last line"),
                "{pattern}: {}",
                error.message
            );
        }
        for pattern in [
            "a.b",
            "a\\\\nb",
            "[^\\n]*x",
            "[^\n]",
            "\\w\\d",
            "(?x) a\n b",
            "a\\n?",
            "a\\n*b",
            "a|b\\n",
            "[\\n ]",
            "(a\\n)?b",
            "(?x)a # b\n",
            "(",
        ] {
            assert_eq!(check_one_line(pattern), Ok(()), "{pattern}");
        }
    }
}
