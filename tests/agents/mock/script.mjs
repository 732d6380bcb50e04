// The script of the standalone mock: the prompt says what the model does. The language is described
// in ../mock-model.

import { createHash } from "node:crypto";
import { toolNamed } from "./server.mjs";

/** A script that follows the directives in the newest text of the user's. */
export function directed() {
  const failures = new Map(); // how often an error was given already, by place
  return (turn) => {
    if (turn.side) return [{ say: turn.schema ? JSON.stringify(instanceOf(turn.schema)) : "run the tests" }];
    try {
      const newest = legsOf(parse(turn.text));
      const insisting = newest === null && turn.insisting.find(isUnfinished);
      if (insisting) turn = { ...turn, ...insisting };
      const legs = newest ?? (insisting && legsOf(parse(turn.text)));
      if (!legs) return [{ say: `echo ${summary(turn.text)}` }];
      const number = turn.since.length;
      const leg = legs[number] ?? [{ say: "Done." }];
      const place = JSON.stringify([turn.users, turn.text, number]);
      return leg.flatMap((step, at) => perform(step, turn, failures, `${place} ${at}`));
    } catch (error) {
      return [{ say: `mock: ${error.message}` }];
    }
  };
}

/** Whether calls of a text's script are still to come. */
const isUnfinished = ({ text, since }) => {
  const steps = parse(text);
  return steps.some(({ word }) => word === "insist") && since.length < legsOf(steps).length - 1;
};

/** Length in characters and the start of the SHA-256 of a text. */
export const summary = (text) =>
  `${[...text].length} ${createHash("sha256").update(text).digest("hex").slice(0, 8)}`;

/** The steps in the text's lines that begin with `mock:`, behind a sender's tag or not. */
function parse(text) {
  const steps = [];
  for (const line of text.split(/\r\n|\r|\n/)) {
    let [, rest] = line.match(/^\s*(?:\[[^\]]*\]\s*)?mock:(.*)$/) ?? [];
    while (rest !== undefined) {
      const [step, after] = stepAt(rest.trimStart());
      if (step) steps.push(step);
      rest = after;
    }
  }
  return steps;
}

/** The first step of a line, and what follows behind its `;;`. */
function stepAt(line) {
  const [, word, rest] = line.match(/^(\S*)\s*(.*)$/s);
  if (word === "call") {
    const [, tool, tail] = rest.match(/^(\S+)\s*(.*)$/s) ?? [];
    if (!tool) throw new Error("call: no tool named");
    const end = tail.startsWith("{") ? endOfObject(tail) : 0;
    const [after] = tail.slice(end).match(/(?<=^\s*;;).*/s) ?? [];
    if (after === undefined && tail.slice(end).trim()) throw new Error(`call ${tool}: ${tail} is no JSON object`);
    return [{ word, tool, args: JSON.parse(tail.slice(0, end) || "{}") }, after];
  }
  const at = rest.indexOf(";;");
  const [value, after] = at < 0 ? [rest, undefined] : [rest.slice(0, at), rest.slice(at + 2)];
  return [word && { word, value: value.trim() }, after];
}

/** Where the JSON object ends that a text begins with. */
function endOfObject(text) {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const c = text[at];
    if (quoted) {
      if (c === "\\") at += 1;
      else quoted = c !== '"';
    } else if (c === '"') quoted = true;
    else if (c === "{") depth += 1;
    else if (c === "}" && (depth -= 1) === 0) return at + 1;
  }
  throw new Error(`${text}: the object does not end`);
}

const isCall = (step) => ["call", "shell", "write"].includes(step.word);

/** The steps in legs, each of which ends with a call; the next begins when its result is there. */
function legsOf(steps) {
  if (steps.length === 0) return null;
  const legs = [[]];
  for (const step of steps) {
    legs.at(-1).push(step);
    if (isCall(step)) legs.push([]);
  }
  if (legs.at(-1).length === 0) legs.at(-1).push({ word: "say", value: "Done." });
  return legs;
}

function perform(step, turn, failures, place) {
  const { word, value } = step;
  const fails = (times = "always") => {
    const count = failures.get(place) ?? 0;
    failures.set(place, count + 1);
    return times === "always" || count < number(times, word);
  };
  switch (word) {
    case "say":
      return [{ say: unescape(fill(value, turn.since)) }];
    case "think":
      return [{ think: unescape(value) }];
    case "slow":
      return slow(value);
    case "wait":
      return [{ wait: number(value, word) }];
    case "hang":
      return [{ wait: 24 * 3600 }];
    case "insist":
      return [];
    case "drop":
      return [{ drop: true }];
    case "error": {
      const [status, times] = value.split(/\s+/);
      return fails(times) ? [{ error: number(status, word) }] : [];
    }
    case "limit": {
      const [kind, seconds, times] = value.split(/\s+/);
      return fails(times) ? [{ limit: kind, seconds: number(seconds ?? "", word) }] : [];
    }
    case "call":
      return called(turn, step.tool, fill(step.args, turn.since));
    case "shell":
      return own(turn, shells, fill(value, turn.since));
    case "write": {
      const [, path, content] = value.match(/^(\S+)\s*(.*)$/s) ?? [];
      return own(turn, writers, path, unescape(content ?? ""));
    }
    default:
      return [{ say: `mock: no directive ${word}` }];
  }
}

function number(text, word) {
  const value = Number(text);
  if (text === "" || Number.isNaN(value)) throw new Error(`${word}: ${JSON.stringify(text)} is no number`);
  return value;
}

/** `slow CHUNKS SECONDS [TEXT]`: the pieces of the text with a pause behind each. */
function slow(value) {
  const [, chunks, seconds, text] = value.match(/^(\S+)\s+(\S+)\s*(.*)$/s) ?? [];
  const count = number(chunks ?? "", "slow");
  const pause = number(seconds ?? "", "slow") / count;
  const all = [...unescape(text)];
  const pieceAt = (i) => all.slice(Math.floor((i * all.length) / count), Math.floor(((i + 1) * all.length) / count)).join("");
  const piece = text ? pieceAt : (i) => `line ${i + 1}\n`;
  return Array.from({ length: count }, (_, i) => [{ say: piece(i) }, { wait: pause }]).flat();
}

function called(turn, name, args) {
  const tool = toolNamed(turn.tools, name);
  if (tool) return [{ call: tool, args }];
  return [{ say: `mock: no tool ${name} among ${turn.tools.map((t) => t.name).join(" ")}` }];
}

// The CLIs' own tools, by their names in each CLI.
const shells = {
  Bash: (command) => ({ command, description: "Run a command" }), // claude
  bash: (command) => ({ command, description: "Run a command" }), // opencode
  exec_command: (cmd) => ({ cmd }), // codex
  shell_command: (command) => ({ command }), // codex, older
  shell: (command) => ({ command: ["sh", "-c", command] }), // codex, older still
  run_shell_command: (command) => ({ command, description: "Run a command" }), // gemini
};
const writers = {
  Write: (file_path, content) => ({ file_path, content }), // claude
  write: (filePath, content) => ({ filePath, content }), // opencode
  write_file: (file_path, content) => ({ file_path, content }), // gemini
  apply_patch: (path, content) => ({
    input: `*** Begin Patch\n*** Add File: ${path}\n${content.split("\n").map((l) => `+${l}\n`).join("")}*** End Patch\n`,
  }), // codex
};

function own(turn, table, ...values) {
  const tool = turn.tools.find(({ name }) => Object.hasOwn(table, name));
  if (tool) return [{ call: tool, args: table[tool.name](...values) }];
  return called(turn, Object.keys(table).join("|"), {});
}

/** `\n` and `\t` stand for what they name, in text that is given on one line. */
const unescape = (text) => text.replace(/\\(n|t|\\)/g, (_, c) => ({ n: "\n", t: "\t", "\\": "\\" })[c]);

/** Puts values of earlier results, `{{result.0.process_id}}`, into a text or any JSON value. */
function fill(value, results) {
  if (Array.isArray(value)) return value.map((v) => fill(v, results));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fill(v, results)]));
  }
  if (typeof value !== "string") return value;
  const pattern = /\{\{result\.(-?\d+)((?:\.\w+)*)\}\}/g;
  const whole = value.match(pattern);
  if (whole?.[0] === value) return valueOf(results, ...pattern.exec(value).slice(1));
  return value.replace(pattern, (_, at, path) => {
    const found = valueOf(results, at, path);
    return typeof found === "string" ? found : JSON.stringify(found);
  });
}

function valueOf(results, at, path) {
  const text = results.at(Number(at))?.text ?? "";
  if (!path) return text;
  const start = text.indexOf("{");
  let value;
  try {
    value = JSON.parse(text.slice(start, text.lastIndexOf("}") + 1));
  } catch {
    return `(result ${at} is no JSON)`;
  }
  for (const key of path.split(".").slice(1)) value = value?.[key];
  return value ?? `(result ${at} has no ${path})`;
}

/** A value that a JSON schema allows, the smallest that comes to mind. */
function instanceOf(schema) {
  if (schema.enum) return schema.enum[0];
  const type = String(Array.isArray(schema.type) ? schema.type[0] : schema.type ?? "object").toLowerCase();
  if (type === "object") {
    return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([key, inner]) => [key, instanceOf(inner)]));
  }
  return { string: "Mock", number: 1, integer: 1, boolean: false, array: [], null: null }[type];
}
