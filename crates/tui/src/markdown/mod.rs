//! Renders Markdown, the text of scratchpads, as rows of a given width.

mod flow;
mod table;
#[cfg(test)]
mod tests;

use patterm_screen::{Attributes, Span, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::canvas::text_width;
use crate::settings::Theme;

use flow::Flow;
use table::Table;

/// One row.
pub(crate) type Row = Vec<Span>;

/// Bytes that are shown: hours of reading, laid out for every frame. An editor shows the rest.
const TEXT_BYTES: usize = 128 << 10;

/// Nested lists and quotes that are indented.
const DEPTH: usize = 8;

/// The rows of a text at a width.
pub(crate) fn rows(text: &str, width: usize, theme: &Theme) -> Vec<Row> {
    let cut = text.floor_char_boundary(TEXT_BYTES);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(width.max(1), theme);
    for event in Parser::new_ext(&text[..cut], options) {
        page.take(event);
    }
    page.flush();
    if cut < text.len() {
        page.push(vec![run("… open it in your editor to see the rest", &theme.dim)]);
    }
    page.rows
}

fn run(text: &str, style: &Style) -> Span {
    Span { text: text.to_owned(), style: style.clone() }
}

/// The left margin of a list item or a quote.
struct Margin {
    /// Before its first row, until that is written.
    first: Option<String>,
    rest: String,
}

/// The page being written.
struct Page<'t> {
    theme: &'t Theme,
    width: usize,
    rows: Vec<Row>,
    margins: Vec<Margin>,
    /// The numbers of the open lists; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The styles of the open spans.
    styles: Vec<Style>,
    flow: Flow,
    table: Option<Table>,
    heading: Option<HeadingLevel>,
    in_code: bool,
    /// An empty row comes before the next block.
    apart: bool,
}

impl<'t> Page<'t> {
    fn new(width: usize, theme: &'t Theme) -> Self {
        Self {
            theme,
            width,
            rows: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            styles: Vec::new(),
            flow: Flow::default(),
            table: None,
            heading: None,
            in_code: false,
            apart: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.code(&text),
            Event::Text(text) => self.flow.add(&text, &self.style()),
            Event::Code(text) => {
                let style = Style { foreground: self.theme.accent.foreground, ..self.style() };
                self.flow.add(&text, &style);
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.flow.add(text.trim_end_matches('\n'), &self.theme.dim);
            }
            Event::SoftBreak => self.flow.add(" ", &self.style()),
            Event::HardBreak => self.flow.end_line(),
            Event::Rule => {
                self.flush();
                self.space();
                let rule = "─".repeat(self.inner_width());
                self.push(vec![run(&rule, &self.theme.dim)]);
                self.apart = true;
            }
            Event::TaskListMarker(done) => {
                let style = if done { &self.theme.working } else { &self.theme.text };
                self.flow.add(if done { "[x] " } else { "[ ] " }, style);
            }
            // Not enabled.
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin(),
            Tag::Heading { level, .. } => {
                self.begin();
                self.heading = Some(level);
                let theme = self.theme;
                let large = level <= HeadingLevel::H2;
                self.styles.push(if large { theme.accent.clone() } else { theme.strong.clone() });
            }
            Tag::BlockQuote(_) => {
                self.begin();
                let bar = "▏ ".to_owned();
                self.margins.push(Margin { first: Some(bar.clone()), rest: bar });
            }
            Tag::CodeBlock(kind) => {
                self.begin();
                self.in_code = true;
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.flow.add(&language, &self.theme.dim);
                    self.flush();
                }
                self.margins.push(Margin { first: None, rest: "  ".to_owned() });
            }
            Tag::List(number) => {
                self.flush();
                self.apart &= self.lists.is_empty();
                self.space();
                self.lists.push(number);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.begin();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::Emphasis => self.with(Attributes::ITALIC),
            Tag::Strong => self.with(Attributes::BOLD),
            Tag::Strikethrough => self.with(Attributes::STRIKEOUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.finish(),
            TagEnd::Heading(level) => {
                self.styles.pop();
                self.finish();
                self.heading = None;
                if level <= HeadingLevel::H2 {
                    self.underline(if level == HeadingLevel::H1 { "━" } else { "─" });
                }
            }
            TagEnd::BlockQuote(_) => {
                self.finish();
                self.margins.pop();
            }
            TagEnd::CodeBlock => {
                self.margins.pop();
                self.in_code = false;
                self.apart = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.apart = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                self.margins.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.flow);
                if let Some(table) = &mut self.table {
                    table.add(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take();
                let rows = table.map(|table| table.rows(self.inner_width(), self.theme));
                rows.into_iter().flatten().for_each(|row| self.push(row));
                self.apart = true;
            }
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image => drop(self.styles.pop()),
            _ => {}
        }
    }

    /// The current style.
    fn style(&self) -> Style {
        self.styles.last().unwrap_or(&self.theme.text).clone()
    }

    fn with(&mut self, attributes: Attributes) {
        let style = self.style();
        self.styles.push(Style { attributes: style.attributes | attributes, ..style });
    }

    /// Only links for browsers and mail programs: a terminal might execute others.
    fn link(&mut self, target: &str) {
        self.with(Attributes::UNDERLINE);
        let opens = ["https://", "http://", "mailto:"].iter().any(|way| target.starts_with(way));
        if opens
            && !target.chars().any(char::is_control)
            && let Some(style) = self.styles.last_mut()
        {
            style.link = Some(target.into());
        }
    }

    fn item(&mut self) {
        self.flush();
        self.space();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(text_width(&mark));
        self.margins.push(Margin { first: Some(mark), rest });
    }

    fn code(&mut self, text: &str) {
        let style = Style { foreground: self.theme.accent.foreground, ..self.theme.text.clone() };
        for line in text.lines() {
            for row in flow::hard(line, self.inner_width(), &style) {
                self.push(row);
            }
        }
    }

    /// A block begins.
    fn begin(&mut self) {
        self.flush();
        self.space();
    }

    /// A block ends.
    fn finish(&mut self) {
        self.flush();
        self.apart = true;
    }

    /// An empty row between blocks.
    fn space(&mut self) {
        if std::mem::take(&mut self.apart) && !self.rows.is_empty() {
            // An item's bullet is on its first row, not on an empty one before it.
            let margin: String =
                self.margins.iter().take(DEPTH).map(|margin| margin.rest.as_str()).collect();
            self.rows.push(vec![run(margin.trim_end(), &self.theme.dim)]);
        }
    }

    /// The width between the margins.
    fn inner_width(&self) -> usize {
        let margins = self.margins.iter().take(DEPTH);
        let taken: usize = margins.map(|margin| text_width(&margin.rest)).sum();
        self.width.saturating_sub(taken).max(1)
    }

    /// Writes what has been collected.
    fn flush(&mut self) {
        let flow = std::mem::take(&mut self.flow);
        for row in flow.wrap(self.inner_width()) {
            self.push(row);
        }
    }

    fn push(&mut self, row: Row) {
        let mut whole = Vec::new();
        for margin in self.margins.iter_mut().take(DEPTH) {
            let text = margin.first.take().unwrap_or_else(|| margin.rest.clone());
            whole.push(run(&text, &self.theme.dim));
        }
        whole.extend(row);
        self.rows.push(whole);
    }

    /// A line below a heading, as long as the heading's last row.
    fn underline(&mut self, with: &str) {
        let last = self.rows.last().into_iter().flatten().skip(self.margins.len().min(DEPTH));
        let columns = last.map(|run| text_width(&run.text)).sum();
        self.push(vec![run(&with.repeat(columns), &self.theme.dim)]);
    }
}
