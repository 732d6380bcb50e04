//! A page with the text in its colours, complete in itself and without scripts.

use std::fmt::Write as _;

use patterm_wire::recording::{
    RecordedAttribute, RecordedColour, RecordedStyle, RecordingBegun, RecordingPart,
};

use super::Exporter;
use crate::since::local_time;

/// The page forbids everything but its own styles, should any text ever get out of its place.
const HEAD: &str = r#"<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<style>
body { background: #1c1c1c; color: #d0d0d0; margin: 1em }
pre { font: 14px/1.25 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere }
h1 { font: 600 14px/1.5 ui-sans-serif, system-ui, sans-serif }
a { color: inherit }
</style>
"#;

const BACKGROUND: RecordedColour = RecordedColour::Rgb(0x1c, 0x1c, 0x1c);
const FOREGROUND: RecordedColour = RecordedColour::Rgb(0xd0, 0xd0, 0xd0);

/// The first sixteen colours, readable on the page's background.
const COLOURS: [(u8, u8, u8); 16] = [
    (0x1c, 0x1c, 0x1c),
    (0xe0, 0x5f, 0x5f),
    (0x87, 0xaf, 0x5f),
    (0xd7, 0xaf, 0x5f),
    (0x6f, 0x9f, 0xd7),
    (0xaf, 0x87, 0xd7),
    (0x5f, 0xaf, 0xaf),
    (0xd0, 0xd0, 0xd0),
    (0x80, 0x80, 0x80),
    (0xff, 0x87, 0x87),
    (0xaf, 0xd7, 0x87),
    (0xff, 0xd7, 0x87),
    (0x87, 0xbf, 0xff),
    (0xd7, 0xaf, 0xff),
    (0x87, 0xd7, 0xd7),
    (0xff, 0xff, 0xff),
];

#[derive(Debug)]
pub(super) struct Html {
    name: String,
    from_ms: Option<u64>,
    to_ms: Option<u64>,
}

impl Html {
    pub(super) fn new(begun: &RecordingBegun) -> Self {
        let RecordingBegun { name, from_ms, to_ms, .. } = begun.clone();
        Self { name, from_ms, to_ms }
    }
}

impl Exporter for Html {
    fn begin(&self) -> anyhow::Result<String> {
        let mut text = format!("<!doctype html>\n<html>\n{HEAD}<title>");
        escape(&mut text, &self.name);
        text.push_str("</title>\n<h1>");
        escape(&mut text, &self.name);
        let time = |ms| local_time(ms).format("%Y-%m-%d %H:%M:%S").to_string();
        if let Some((from, to)) = self.from_ms.zip(self.to_ms) {
            let _ = write!(text, " · {} – {}", time(from), time(to));
        }
        text.push_str("</h1>\n<pre>");
        Ok(text)
    }

    fn part(&mut self, part: &RecordingPart) -> anyhow::Result<String> {
        let mut text = String::new();
        for line in &part.lines {
            for span in &line.spans {
                let style = css(&span.style);
                let link = span.style.link.as_deref().filter(|link| is_web_link(link));
                if let Some(link) = link {
                    text.push_str("<a rel=\"noreferrer noopener\" href=\"");
                    escape(&mut text, link);
                    text.push_str("\">");
                }
                match style.is_empty() {
                    true => escape(&mut text, &span.text),
                    false => {
                        let _ = write!(text, "<span style=\"{style}\">");
                        escape(&mut text, &span.text);
                        text.push_str("</span>");
                    }
                }
                if link.is_some() {
                    text.push_str("</a>");
                }
            }
            text.push('\n');
        }
        Ok(text)
    }

    fn end(&self) -> &'static str {
        "</pre>\n</html>\n"
    }
}

/// The server sends no others; a page must not depend on that.
fn is_web_link(link: &str) -> bool {
    let link = link.to_ascii_lowercase();
    link.starts_with("http://") || link.starts_with("https://")
}

/// Appends text without anything that has a meaning in HTML.
fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other if other.is_control() && other != '\t' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
}

fn css(style: &RecordedStyle) -> String {
    let has = |attribute| style.attributes.contains(&attribute);
    let (mut foreground, mut background) = (style.foreground, style.background);
    if has(RecordedAttribute::Inverse) {
        (foreground, background) =
            (background.or(Some(BACKGROUND)), foreground.or(Some(FOREGROUND)));
    }
    let mut css = String::new();
    if has(RecordedAttribute::Hidden) {
        css.push_str("color:transparent;");
    } else if let Some(colour) = foreground {
        let _ = write!(css, "color:{};", hex(colour));
    }
    if let Some(colour) = background {
        let _ = write!(css, "background:{};", hex(colour));
    }
    let simple = [
        (RecordedAttribute::Bold, "font-weight:bold;"),
        (RecordedAttribute::Dim, "opacity:.6;"),
        (RecordedAttribute::Italic, "font-style:italic;"),
    ];
    simple.iter().filter(|(it, _)| has(*it)).for_each(|(_, rule)| css.push_str(rule));
    let lines = [
        (RecordedAttribute::Underline, " underline"),
        (RecordedAttribute::Strikeout, " line-through"),
        (RecordedAttribute::Overline, " overline"),
    ];
    let lines: String = lines.iter().filter(|(it, _)| has(*it)).map(|(_, line)| *line).collect();
    if !lines.is_empty() {
        let _ = write!(css, "text-decoration:{};", lines.trim_start());
    }
    css
}

fn hex(colour: RecordedColour) -> String {
    let (red, green, blue) = match colour {
        RecordedColour::Rgb(red, green, blue) => (red, green, blue),
        RecordedColour::Indexed(index) => rgb(index),
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A colour of the palette: sixteen of our own, then a cube and greys, as in all terminals.
fn rgb(index: u8) -> (u8, u8, u8) {
    match index {
        0..16 => COLOURS[usize::from(index)],
        16..232 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

#[cfg(test)]
mod tests {
    use patterm_wire::recording::{RecordedLine, RecordedSpan};

    use super::*;

    fn page(spans: Vec<RecordedSpan>) -> String {
        let mut html = Html { name: "<b>".into(), from_ms: None, to_ms: None };
        let lines = vec![RecordedLine { spans }];
        let part = RecordingPart { lines, ..RecordingPart::default() };
        html.begin().unwrap() + &html.part(&part).unwrap() + html.end()
    }

    fn span(text: &str, style: RecordedStyle) -> RecordedSpan {
        RecordedSpan { text: text.into(), style }
    }

    #[test]
    fn no_text_becomes_markup() {
        let hostile = "</pre><script>alert(1)</script>&\"'\u{1b}\u{9b}";
        let link = |link: &str| RecordedStyle { link: Some(link.into()), ..Default::default() };
        let page = page(vec![
            span(hostile, RecordedStyle::default()),
            span("a", link("https://x/\"onclick=\"alert(1)")),
            span("b", link("javascript:alert(1)")),
        ]);
        assert!(!page.contains("<script") && !page.contains("javascript:"), "{page}");
        assert!(!page.contains("<b>") && page.contains("<title>&lt;b&gt;</title>"));
        assert!(
            page.contains(
                "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;\u{fffd}"
            )
        );
        assert!(page.contains("href=\"https://x/&quot;onclick=&quot;alert(1)\">a</a>b\n</pre>"));
    }

    #[test]
    fn styles_are_kept() {
        let style = RecordedStyle {
            foreground: Some(RecordedColour::Indexed(9)),
            background: Some(RecordedColour::Rgb(1, 2, 255)),
            attributes: vec![
                RecordedAttribute::Bold,
                RecordedAttribute::Underline,
                RecordedAttribute::Strikeout,
            ],
            link: None,
        };
        assert_eq!(
            css(&style),
            "color:#ff8787;background:#0102ff;font-weight:bold;text-decoration:underline line-through;"
        );
        let inverse = RecordedStyle {
            attributes: vec![RecordedAttribute::Inverse],
            ..RecordedStyle::default()
        };
        assert_eq!(css(&inverse), "color:#1c1c1c;background:#d0d0d0;");
        assert_eq!((rgb(16), rgb(231), rgb(255)), ((0, 0, 0), (255, 255, 255), (238, 238, 238)));
    }
}
