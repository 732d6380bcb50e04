// Feeds @xterm/headless and prints what it shows. Reads one JSON case a line,
// {"rows", "columns", "steps": ["text" | {"rows", "columns"}, …]}, and writes one JSON state a line.
//   node grids.mjs FOLDER-WITH-NODE_MODULES < cases
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.argv[2]}/`);
const { Terminal } = require('@xterm/headless');

// A colour as text: d default, pN palette, rR,G,B.
function colour(isDefault, isPalette, value) {
  if (isDefault) return 'd';
  return isPalette ? `p${value}` : `r${value >> 16},${(value >> 8) & 255},${value & 255}`;
}

// The colour of the underline, which the public interface does not have.
function underlineColour(cell) {
  const none = 0x3ffffff;
  if (!cell.hasExtendedAttrs() || (cell.extended.underlineColor & none) === none) return null;
  return colour(cell.isUnderlineColorDefault(), cell.isUnderlineColorPalette(), cell.getUnderlineColor());
}

// Bits in the order of patterm's attributes.
function attributes(cell) {
  // A link counts as underlined otherwise.
  const underline = cell.getUnderlineStyle();
  const flags = [
    cell.isBold(), cell.isDim(), cell.isItalic(), underline === 1, cell.isInverse(), cell.isInvisible(),
    cell.isStrikethrough(), underline === 2, underline === 3, underline === 4, underline === 5, cell.isBlink(),
    cell.isOverline(),
  ];
  return flags.reduce((bits, flag, index) => bits | (flag ? 1 << index : 0), 0);
}

// The cells of a row: text, width and style. A link whose line has moved is forgotten: ?.
function cells(terminal, line) {
  const list = [];
  for (let x = 0; x < terminal.cols; x++) {
    const cell = line.getCell(x);
    if (cell.getWidth() === 0) continue;
    const foreground = colour(cell.isFgDefault(), cell.isFgPalette(), cell.getFgColor());
    const background = colour(cell.isBgDefault(), cell.isBgPalette(), cell.getBgColor());
    const link = cell.hasExtendedAttrs() && cell.extended.urlId
      ? terminal._core._oscLinkService.getLinkData(cell.extended.urlId)?.uri ?? '?'
      : null;
    list.push([
      cell.getChars() || ' ', cell.getWidth(), foreground, background, underlineColour(cell), attributes(cell), link,
    ]);
  }
  return list;
}

function state(terminal) {
  const buffer = terminal.buffer.active;
  const lines = [];
  for (let index = 0; index < buffer.length; index++) {
    lines.push(buffer.getLine(index));
  }
  const text = (line) => line.translateToString(true).trimEnd();
  const modes = terminal.modes;
  return {
    rows: lines.slice(buffer.baseY).map(text),
    cells: lines.slice(buffer.baseY).map((line) => cells(terminal, line)),
    wraps: lines.slice(buffer.baseY).map((_, row) => Boolean(lines[buffer.baseY + row + 1]?.isWrapped)),
    history: lines.slice(0, buffer.baseY).map(text),
    cursor: [buffer.cursorY, Math.min(buffer.cursorX, terminal.cols - 1)],
    alternate: buffer.type === 'alternate',
    modes: [modes.applicationCursorKeysMode, modes.bracketedPasteMode, modes.insertMode, modes.originMode],
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { rows, columns, steps } = JSON.parse(line);
  const terminal = new Terminal({
    rows, cols: columns, scrollback: 10_000, allowProposedApi: true, scrollOnEraseInDisplay: true,
    logLevel: 'off', reflowCursorLine: true,
  });
  for (const step of steps) {
    if (typeof step === 'string') {
      await new Promise((done) => terminal.write(step, done));
    } else {
      terminal.resize(step.columns, step.rows);
    }
  }
  process.stdout.write(`${JSON.stringify(state(terminal))}\n`);
  terminal.dispose();
}
