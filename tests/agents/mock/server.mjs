// A mock of the model APIs that agents' CLIs talk to. Loopback only, on a port the
// kernel chooses. apis.mjs reads requests and writes answers; a script decides in
// between what the model does. It is a function from a turn,
//   { api, model, side, text, users, tools, results, since, … }   see turnOf
// to a list of steps, which are executed in order:
//   { say: "…" }              text; { think: "…" } the same as reasoning
//   { wait: seconds }         a pause; before the first byte if it comes first
//   { call: tool, args }      call one of the turn's tools; ends the answer
//   { error: status }         an HTTP error if nothing was sent yet, else a torn stream
//   { limit: kind, seconds }  the provider's response at a rate limit or a usage limit
//   { drop: true }            the connection is closed abruptly
// The answer ends normally after the last step.
//
// The mock is also the CLIs' HTTP proxy: a CLI that tries to reach anything but loopback sends its
// request here; it is refused and recorded.

import http from "node:http";
import { apis } from "./apis.mjs";

/** The script that calls the tool named so once, and ends when its result is there. */
export function callOnce(suffix) {
  return (turn) => {
    if (turn.results.length > 0) return [{ say: "Done." }];
    const tool = toolNamed(turn.tools, suffix);
    return tool ? [{ call: tool, args: {} }] : [{ say: "OK" }];
  };
}

/** The tool of that name, or the one whose name ends so behind a prefix of the CLI's. */
export function toolNamed(tools, name) {
  return (
    tools.find((t) => t.name === name) ??
    tools.find((t) => t.name.endsWith(`_${name}`)) ??
    tools.find((t) => t.name.endsWith(name))
  );
}

/**
 * Starts the mock. `turns` lists what was asked and answered, `other` all other
 * requests, `refused` the hosts it refused to reach. `tell` hears of each as it
 * happens: a turn begun, a turn over, and the rest.
 */
export async function startMock(script, tell = () => {}) {
  const mock = { turns: [], other: [], refused: [] };
  const other = (what) => {
    mock.other.push(what);
    tell({ event: "other", request: what });
  };
  const refuse = (host) => {
    mock.refused.push(host);
    tell({ event: "refused", host });
  };
  const server = http.createServer(async (request, response) => {
    response.on("error", () => {});
    try {
      if (request.url.startsWith("http:")) {
        refuse(new URL(request.url).host);
        return json(response, 403, { error: "no traffic but loopback" });
      }
      await answer({ mock, script, tell, other }, request, response);
    } catch (error) {
      other(`${request.method} ${request.url}: ${error.stack}`);
      if (response.headersSent) return response.destroy();
      json(response, 500, { error: { type: "mock_error", message: String(error) } });
    }
  });
  server.on("connect", (request, socket) => {
    refuse(request.url);
    socket.on("error", () => {});
    socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  });
  await new Promise((resolve, reject) => server.on("error", reject).listen(0, "127.0.0.1", resolve));
  mock.url = `http://127.0.0.1:${server.address().port}`;
  mock.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return mock;
}

async function answer({ mock, script, tell, other }, request, response) {
  const url = new URL(request.url, "http://mock");
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);

  const api = request.method === "POST" && apis.find((a) => a.path.test(url.pathname));
  if (!api) {
    other(`${request.method} ${url.pathname}`);
    const side = sideAnswers.find(([path]) => path.test(url.pathname));
    return json(response, side ? 200 : 404, side ? side[1] : { error: { message: "not in the mock" } });
  }

  const body = JSON.parse(Buffer.concat(chunks).toString());
  const turn = turnOf(api, body, url);
  const steps = await script(turn);
  mock.turns.push({ ...turn, reply: steps });
  const number = mock.turns.length;
  tell({ event: "turn", turn: number, ...turn, steps });

  // Ids differ between runs, too: a resumed conversation still contains the older ones.
  const id = `mock_${number}_${Math.random().toString(36).slice(2, 10)}`;
  const out = new Output(response);
  const writer = api.writer(out, { id, model: turn.model, stream: api.streams(body, url) });
  const how = await perform(steps, api, out, writer);
  tell({ event: "end", turn: number, how });
}

/** Takes the steps, and says how that ended. */
async function perform(steps, api, out, writer) {
  for (const step of steps) {
    if (step.wait !== undefined) await out.pause(step.wait);
    if (out.gone) return "client left";
    if (step.say !== undefined) writer.text(step.say);
    if (step.think !== undefined) writer.think(step.think);
    if (step.drop || (step.error && out.begun)) {
      out.cut();
      return "cut";
    }
    if (step.error) {
      out.json(step.error, api.error(step.error));
      return `error ${step.error}`;
    }
    if (step.limit) {
      const { status, headers, body } = api.limit(step.limit, step.seconds);
      out.json(status, body, headers);
      return `limit ${step.limit}`;
    }
    if (step.call) {
      writer.call(step.call, step.args);
      break;
    }
  }
  writer.end();
  return "complete";
}

/**
 * What a script gets to know of a request:
 *   text      the newest text of the user's, without what the CLI puts around it
 *   users     how many texts of the user's there are in the conversation
 *   said      the beginnings of those texts, in order
 *   group     the texts since the model last spoke, the newest included
 *   around    what the CLI put there of its own: reminders, contexts
 *   results   every tool result of the conversation, in order: { text, failed }
 *             (`failed` is always false where the API does not say)
 *   since     those that came after the newest text
 *   side      why this is no turn of the conversation, or null
 *   insisting the older texts with `mock: insist` in them, each with the results since
 *   instructions  what patterm told the agent first, as far as it came
 *   schema    the JSON schema that the answer has to follow, if any
 */
function turnOf(api, body, url) {
  const { items, tools, system, schema = null } = api.read(body);
  const model = body.model ?? url.pathname.match(/models\/([^:]+):/)?.[1] ?? "mock-model";
  const texts = items.flatMap(({ user }, at) => (user === undefined ? [] : [{ user: unwrapped(user), at }]));
  const own = texts.filter((item) => !isWrapping(item.user));
  const newest = own.at(-1);
  const spoke = items.findLastIndex((item, at) => item.model && at < (newest?.at ?? 0));
  const results = (from) => items.slice(from).flatMap((item) => item.result ?? []);
  return {
    api: api.name,
    model,
    side: sideOf({ tools, system, schema, body, text: newest?.user ?? "" }),
    text: newest?.user ?? "",
    users: own.length,
    said: own.map((item) => item.user.slice(0, SAID)),
    group: own.filter((item) => item.at > spoke).map((item) => item.user),
    around: texts.filter((item) => item.at > spoke && isWrapping(item.user)).map((item) => item.user),
    tools,
    results: results(0),
    since: results(newest?.at ?? 0),
    insisting: own
      .slice(0, -1)
      .filter((item) => item.user.includes("mock: insist"))
      .map((item) => ({ text: item.user, since: results(item.at) })),
    schema,
    instructions: JSON.stringify(body).match(INSTRUCTIONS)?.[0] ?? null,
  };
}

// patterm's instructions to an agent, wherever the CLI puts them.
const INSTRUCTIONS = /You run inside patterm.*?use patterm's\./;

// Long enough to distinguish texts, and short enough to log all of them repeatedly.
const SAID = 200;

/** What claude says around a message that comes while it works is taken off again. */
const unwrapped = (text) =>
  text.match(/^The user sent a new message while you were working:\n([\s\S]*)\n\nThis is how Claude Code surfaces/)?.[1] ?? text;

// Text that a CLI adds as the user's: a single element, or a known opening.
const isWrapping = (text) =>
  /^\s*<([a-zA-Z][\w-]*)[^>]*>[\s\S]*<\/\1>\s*$/.test(text) || openings.some((opening) => text.trimStart().startsWith(opening));
const openings = [
  "[Request interrupted by user",
  "Tool loaded.",
  "# AGENTS.md instructions",
  "This is the Gemini CLI. We are setting up the context",
];

/** Why a request is beside the conversation: titles, quota checks, routing and the like. */
function sideOf({ tools, system, schema, body, text }) {
  if (tools.length === 0) return "no tools";
  if (schema !== null) return "asks for JSON";
  if (body.max_tokens === 1) return "one token";
  if (text.startsWith("[SUGGESTION MODE:")) return "suggests a next prompt";
  return sidePrompts.find((words) => system.includes(words)) ?? null;
}
const sidePrompts = ["You are a title generator", "Generate a concise title"];

// Requests outside of turns: counting tokens, listing models.
const sideAnswers = [
  [/\/count_tokens$/, { input_tokens: 1 }],
  [/:countTokens$/, { totalTokens: 1 }],
  [/\/models$/, { object: "list", data: [], models: [], has_more: false }],
  [/^\/(api\/hello)?$/, {}],
];

function json(response, status, value, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

/** The way back to the client: one JSON answer, or server-sent events as they come. */
class Output {
  begun = false;
  gone = false;
  #response;
  #left;

  constructor(response) {
    this.#response = response;
    this.#left = new Promise((resolve) => {
      response.on("close", () => {
        this.gone = !response.writableFinished;
        resolve();
      });
    });
  }

  json(status, value, headers) {
    this.begun = true;
    json(this.#response, status, value, headers);
  }

  /** An event; one with a `type` also is named so. */
  event(event) {
    if (!this.begun) this.#response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    this.begun = true;
    if (event.type) this.#response.write(`event: ${event.type}\n`);
    this.#response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  }

  finish() {
    this.#response.end();
  }

  cut() {
    this.#response.destroy();
  }

  /** Lets the time pass, or less if the client leaves. */
  async pause(seconds) {
    let timer;
    const over = new Promise((resolve) => (timer = setTimeout(resolve, seconds * 1000)));
    await Promise.race([over, this.#left]);
    clearTimeout(timer);
  }
}
