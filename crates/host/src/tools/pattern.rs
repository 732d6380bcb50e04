//! Patterns as callers give them: linear in time, bounded in size, with the place of an error.

use regex::RegexBuilder;

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

/// Compiles a pattern for bytes, in which `^` and `$` stand for the ends of lines.
pub(super) fn compile_bytes(pattern: &str) -> Result<regex::bytes::Regex, ToolError> {
    check_length(pattern)?;
    let mut builder = regex::bytes::RegexBuilder::new(pattern);
    let built = builder.size_limit(COMPILED_BYTES).multi_line(true).build();
    built.map_err(|e| refused(&e))
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
}
