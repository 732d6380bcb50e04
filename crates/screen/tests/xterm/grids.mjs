// Feeds @xterm/headless and prints what it shows. Reads one JSON case a line,
// {"rows", "columns", "steps": ["text" | {"rows", "columns"}, …]}, and writes one JSON state a line.
//   node grids.mjs FOLDER-WITH-NODE_MODULES < cases
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(`${process.argv[2]}/`);
const { Terminal } = require('@xterm/headless');

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
    logLevel: 'off',
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
