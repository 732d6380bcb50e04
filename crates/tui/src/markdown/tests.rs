//! Markdown in, rows out.

use patterm_screen::Attributes;

use super::*;

fn text(markdown: &str, width: usize) -> String {
    let rows = rows(markdown, width, &Theme::default());
    let lines = rows.iter().map(|row| {
        let line: String = row.iter().map(|run| run.text.as_str()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The style of the span with a text.
fn look(markdown: &str, wanted: &str) -> Style {
    let rows = rows(markdown, 80, &Theme::default());
    let found = rows.iter().flatten().find(|run| run.text == wanted);
    found.unwrap_or_else(|| panic!("no {wanted} in {rows:?}")).style.clone()
}

#[test]
fn headings_paragraphs_and_rules() {
    let markdown = "# One\nfirst words\nand more\n\n## Two\n\n### Three\n\n---\nend  \nhere";
    let expected =
        "One\n━━━\n\nfirst\nwords and\nmore\n\nTwo\n───\n\nThree\n\n─────────\n\nend\nhere";
    assert_eq!(text(markdown, 9), expected);
}

#[test]
fn lists_tasks_and_quotes_are_indented() {
    let markdown = "- one\n- two words here\n  - in it\n    1. deep\n    2. er\n- [x] done\n- [ ] open\n\n\
        9. nine\n10. ten\n\n> said by\n> - her\n>\n> and more";
    let expected = "• one\n• two words\n  here\n  • in it\n    1. deep\n    2. er\n• [x] done\n\
        • [ ] open\n\n9. nine\n10. ten\n\n▏ said by\n▏\n▏ • her\n▏\n▏ and more";
    assert_eq!(text(markdown, 13), expected);
}

#[test]
fn a_loose_list_has_empty_rows_between_its_items() {
    assert_eq!(text("- one\n\n- two\n\n  more\n", 20), "• one\n\n• two\n\n  more");
}

#[test]
fn code_keeps_its_blanks() {
    let markdown =
        "do `x  y`:\n\n```rust\nfn a() {\n    b()\n}\n\tlong_line_that_goes_on\n```\nend";
    let expected =
        "do x y:\n\nrust\n  fn a() {\n      b()\n  }\n      long_line_tha\n  t_goes_on\n\nend";
    assert_eq!(text(markdown, 19), expected);
}

#[test]
fn tables_are_aligned_and_fit() {
    let markdown =
        "| name | what | n |\n|:--|:-:|--:|\n| a | b | 7 |\n| 漢字 | some words | 12 |\n| x |";
    let expected = "name │    what    │  n\n─────┼────────────┼───\na    │     b      │  7\n\
        漢字 │ some words │ 12\nx    │            │";
    assert_eq!(text(markdown, 40), expected);
    let narrow = "name │ what  │  n\n─────┼───────┼───\na    │   b   │  7\n漢字 │ some  │ 12\n\
        \u{20}    │ words │\nx    │       │";
    assert_eq!(text(markdown, 17), narrow);
}

#[test]
fn emphasis_and_links_have_styles() {
    let bold = look("a **b** c", "b");
    assert!(bold.attributes.contains(Attributes::BOLD));
    assert!(look("a *b* c", "b").attributes.contains(Attributes::ITALIC));
    assert!(look("a ~~b~~ c", "b").attributes.contains(Attributes::STRIKEOUT));
    let both = look("***b***", "b").attributes;
    assert!(both.contains(Attributes::BOLD) && both.contains(Attributes::ITALIC));
    let link = look("see [this](https://example.org/x) now", "this");
    assert_eq!(link.link.as_deref(), Some("https://example.org/x"));
    for target in ["javascript:x", "file:///etc/passwd", "x-run:rm"] {
        assert_eq!(look(&format!("[this]({target})"), "this").link, None, "{target}");
    }
}

#[test]
fn control_characters_are_made_visible() {
    let shown = text("a\x1b[2Jb &#27;]0;x&#7; \u{202e}c\u{9b}d `\x07`", 60);
    assert_eq!(shown, "a␛[2Jb ␛]0;x␇ \u{fffd}c\u{fffd}d ␇");
    assert_eq!(text("[x](https://a&#27;b)", 60), "x");
    assert_eq!(look("[x](https://a&#27;b)", "x").link, None);
    assert_eq!(text("<script>alert(1)</script>", 60), "<script>alert(1)</script>");
}

#[test]
fn a_very_long_text_is_truncated() {
    let long = "漢 ".repeat(TEXT_BYTES);
    assert!(text(&long, 80).ends_with("… open it in your editor to see the rest"));
}

const PIECES: [&str; 24] = [
    "# ",
    "\n",
    "\n\n",
    "- ",
    "  ",
    "1. ",
    "> ",
    "```\n",
    "`",
    "**",
    "_",
    "[a](b)",
    "![i](j)",
    "| a | b |\n|--|:-:|\n",
    "| c |",
    "---\n",
    "[ ] ",
    "漢",
    "e\u{301}",
    "word ",
    "<b>",
    "\x1b",
    "&#0;",
    "\t",
];

#[test]
fn no_text_makes_it_panic_or_passes_control_characters() {
    arbtest::arbtest(|u| {
        let mut markdown = String::new();
        let width = u.int_in_range(1..=40)?;
        while !u.is_empty() {
            markdown.push_str(u.choose(&PIECES)?);
            if u.ratio(1, 8)? {
                markdown.push(u.arbitrary()?);
            }
        }
        for row in rows(&markdown, width, &Theme::default()) {
            let line: String = row.iter().map(|run| run.text.as_str()).collect();
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
        Ok(())
    });
}

#[test]
fn a_huge_table_is_limited() {
    let columns = TEXT_BYTES / 8;
    let wide = format!("{}\n{}\n", "|a".repeat(columns), "|-".repeat(columns));
    let rows = rows(&format!("{wide}{}", "|\n".repeat(columns)), 100, &Theme::default());
    assert!(rows.len() < columns * 2);
    assert!(rows.iter().map(Vec::len).sum::<usize>() < 1 << 20);
}

#[test]
fn deep_nesting_is_fast_and_leaves_space() {
    for mark in ["> ", "- ", "* * ", "[", "**a ", "`", "1. > "] {
        let deep = format!("{}end", mark.repeat(5_000));
        assert!(!rows(&deep, 20, &Theme::default()).is_empty(), "{mark}");
    }
}
