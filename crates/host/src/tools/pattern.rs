//! Patterns as callers give them: linear in time, bounded in size, with the place of an error.

use regex::RegexBuilder;
use regex_syntax::hir::{Hir, HirKind};

use super::error::ToolError;

/// The longest pattern: longer ones are a mistake, or an attack.
const PATTERN_BYTES: usize = 4 << 10;

/// Memory that a compiled pattern may take.
const COMPILED_BYTES: usize = 4 << 20;

/// Compiles a pattern for text.
pub(super) fn compile(pattern: &str) -> Result<regex::Regex, ToolError> {
    check_length(pattern)?;
    let built = RegexBuilder::new(pattern).size_limit(COMPILED_BYTES).build();
    built.map_err(|e| refused(&e))
}

/// Compiles a pattern for bytes, in which `^` and `$` stand for the ends of lines, also of those that end
/// with `\r\n`.
pub(super) fn compile_bytes(pattern: &str) -> Result<regex::bytes::Regex, ToolError> {
    check_length(pattern)?;
    let mut builder = regex::bytes::RegexBuilder::new(pattern);
    let built = builder.size_limit(COMPILED_BYTES).multi_line(true).crlf(true).build();
    built.map_err(|e| refused(&e))
}

/// Refuses a pattern that could only match across lines: lines are looked at one by one.
pub(super) fn check_one_line(pattern: &str) -> Result<(), ToolError> {
    check_length(pattern)?;
    // One that cannot be parsed is refused where it is compiled, with the place of the error.
    if !regex_syntax::parse(pattern).is_ok_and(|hir| requires_line_end(&hir)) {
        return Ok(());
    }
    let why = "has a line end, and lines are looked at one by one, so it would never match; look for \
        the line that comes last, or match one line after the other";
    Err(ToolError::invalid("pattern", why))
}

/// Whether a line end is part of every match.
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
    let why = format_args!("has {} bytes; at most {PATTERN_BYTES}", pattern.len());
    Err(ToolError::invalid("pattern", why))
}

fn refused(error: &regex::Error) -> ToolError {
    ToolError::invalid("pattern", format_args!("does not compile: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_place_and_size_is_bounded() {
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
            assert!(error.message.contains("line that comes last"), "{pattern}: {}", error.message);
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
