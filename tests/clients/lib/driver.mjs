// Shared code of the drivers: arguments, a temporary home for the client, its processes, the time
// limit, and the line of JSON at the end.
//
// A driver is `drive("name", async (rig) => ({ version, tools, whoami }))`; it records each action
// with rig.did() and throws if something is wrong.

import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { callOnce, startMock } from "../../agents/mock/server.mjs";

const LIMIT_S = 115; // all in all 120, with the time that cleaning up may take
const SERVER = "patterm"; // the server's name in every client's configuration

/** Runs one driver from the command line to the exit code. */
export async function drive(client, body) {
  const rig = new Rig(client);
  let timer;
  const stopped = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${LIMIT_S} s`)), LIMIT_S * 1000);
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => reject(new Error(`stopped by ${name}`)));
    process.on("uncaughtException", reject);
  });
  try {
    const work = rig.open(process.argv.slice(2)).then(() => body(rig));
    const { version, revision = null, tools, whoami } = await Promise.race([work, stopped]);
    if (!tools.includes("whoami")) throw new Error(`no tool whoami in ${JSON.stringify(tools)}`);
    if (typeof whoami !== "object" || whoami === null) throw new Error(`whoami answered ${JSON.stringify(whoami)}`);
    await rig.close();
    if (process.env.VERBOSE) console.error(rig.story());
    const transport = rig.server.url ? "http" : "stdio";
    console.log(JSON.stringify({ client, version, transport, mode: rig.mode, revision, tools, whoami, did: rig.steps }));
  } catch (error) {
    console.error(`${client}: ${error.message}`);
    await rig.close();
    console.error(rig.story());
    process.exitCode = 1;
  } finally {
    clearTimeout(timer);
    process.exit();
  }
}

class Rig {
  steps = [];
  mode = null;
  #client;
  #temp;
  #mock;
  #children = [];

  constructor(client) {
    this.#client = client;
  }

  async open(argv) {
    this.#parse(argv);
    this.#temp = await mkdtemp(path.join(os.tmpdir(), `patterm-${this.#client}-`));
    this.home = path.join(this.#temp, "home");
    const tmp = path.join(this.#temp, "tmp");
    for (const folder of [this.home, tmp]) await mkdir(folder);
    this.#mock = await startMock(callOnce("whoami"));
    const { PATH, USER, LOGNAME, SHELL, LANG } = process.env;
    this.env = given({
      PATH: `${path.join(this.install, "node_modules/.bin")}:${PATH}`,
      ...{ USER, LOGNAME, SHELL, LANG },
      HOME: this.home,
      TMPDIR: tmp,
      TERM: "dumb",
      NO_COLOR: "1",
      HTTP_PROXY: this.#mock.url,
      HTTPS_PROXY: this.#mock.url,
      NO_PROXY: "127.0.0.1,localhost",
    });
  }

  #parse(argv) {
    const options = {};
    while (argv.length > 0 && argv[0] !== "--") {
      const [name, value] = argv.splice(0, 2);
      options[name] = value;
    }
    const { "--install": install, "--mode": mode = null, "--url": url, "--token": token, ...unknown } = options;
    const [, command, ...args] = argv;
    if (!install || !(url ? token : command) || Object.keys(unknown).length > 0) {
      const ways = ["-- SERVER_COMMAND ARGS…", "--url URL --token TOKEN"];
      throw new Error(`usage: ${this.#client} --install DIR [--mode legacy|auto|modern] ${ways.join(" or ")}`);
    }
    this.install = path.resolve(install);
    this.mode = mode;
    if (url) {
      this.server = { name: SERVER, url, headers: { Authorization: `Bearer ${token}` } };
      return;
    }
    // Some clients scrub the environment: what the server needs is in their configuration.
    const wanted = (key) => key.startsWith("PATTERM_") || key === "XDG_RUNTIME_DIR" || key === "XDG_STATE_HOME";
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => wanted(key)));
    this.server = { name: SERVER, command, args, env };
  }

  /** Checks --mode against what the client knows; none means the client's own default. */
  modes(...known) {
    if (this.mode !== null && !known.includes(this.mode)) {
      throw new Error(`--mode ${this.mode}: this client knows ${known.join(", ") || "none"}`);
    }
  }

  get url() {
    return this.#mock.url;
  }

  did(step) {
    this.steps.push(step);
  }

  /** Starts a program of the installation, or one by its path, in a process group of its own; its output is kept. */
  start(program, args, env = {}) {
    const child = spawn(path.resolve(this.install, "node_modules/.bin", program), args, {
      env: { ...this.env, ...env },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const run = { child, title: [path.basename(program), ...args].join(" "), out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (text) => (run.out += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (run.err += text));
    child.stdin.on("error", () => {});
    // All output is available on "close", which a server that outlives its client can delay.
    run.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code, signal) => resolve(code ?? signal));
      child.on("exit", (code, signal) => setTimeout(resolve, 1000, code ?? signal));
    });
    run.ended.catch(() => {});
    this.#children.push(run);
    return run;
  }

  /** Runs a program with no input to its end, and gives its output; it has to exit with 0. */
  async run(program, args, env) {
    const run = this.start(program, args, env);
    run.child.stdin.end();
    const code = await run.ended;
    if (code !== 0) throw new Error(`${run.title.slice(0, 80)}: exit ${code}`);
    return run;
  }

  /** What `program --version` says, without the words around it. */
  async version(program, ...args) {
    const { out } = await this.run(program, [...args, "--version"]);
    const version = out.match(/\d+\.\d+\.\d+\S*/)?.[0];
    if (!version) throw new Error(`${program} --version: no version in ${JSON.stringify(out)}`);
    return version;
  }

  /** Runs the client's `mcp list`, and looks for the server's line to say so. */
  async listed(program, args, env, connected) {
    const { out, err } = await this.run(program, args, env);
    const line = `${out}\n${err}`.split("\n").find((l) => l.includes(SERVER) && connected.test(l));
    if (!line) throw new Error("mcp list: not connected");
    this.did("mcp list: connected");
  }

  /** Runs the client with a prompt, the mock being its model; gives the tools that the model saw and what whoami said. */
  async asked(program, args, env, prefix) {
    await this.run(program, args, env);
    const turns = this.#mock.turns;
    const seen = turns.find((turn) => turn.reply.some((step) => step.call));
    if (!seen) throw new Error("the model was not offered whoami");
    this.did("tools/list: offered to the mock model");
    const result = turns.flatMap((turn) => turn.results)[0];
    if (!result) throw new Error("the model got no tool result");
    if (result.failed) throw new Error(`whoami failed: ${result.text}`);
    this.did("tools/call whoami via mock model");
    const tools = seen.tools.map((t) => t.name).filter((name) => name.startsWith(prefix));
    return { tools: tools.map((name) => name.slice(prefix.length)), whoami: objectIn(result.text) };
  }

  /** Ends what is left of the driver's processes, and removes its files. */
  async close() {
    await Promise.all(this.#children.map(endGroups));
    this.#mock?.close();
    if (this.#temp) await rm(this.#temp, { recursive: true, force: true, maxRetries: 3 });
  }

  /** How far it came, and the end of what each program wrote. */
  story() {
    if (!this.#mock) return "";
    const tail = (text) => text.trim().split("\n").slice(-25).join("\n").slice(-4000);
    const { turns, other, refused } = this.#mock;
    const asked = turns.map(({ api, tools, reply }) => ({ api, tools: tools.length, reply }));
    const parts = [
      `done: ${this.steps.join("; ") || "nothing"}`,
      `mock model: ${JSON.stringify({ asked, other, refused })}`,
      ...this.#children.map((run) => `--- ${run.title}\n${tail(run.out)}\n${tail(run.err)}`),
    ];
    return parts.join("\n");
  }
}

const given = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

/** The JSON object in a tool result's text, which clients may wrap in words of their own. */
export function objectIn(text) {
  const json = text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
  try {
    return JSON.parse(json);
  } catch {
    throw new Error(`whoami: no JSON in ${JSON.stringify(text)}`);
  }
}

/** The answer of a tools/call: its structured content, or else the JSON in its text. */
export function answerOf(result) {
  if (result.isError) throw new Error(`whoami failed: ${JSON.stringify(result)}`);
  return result.structuredContent ?? objectIn(result.content.map((part) => part.text ?? "").join(""));
}

/** Lets the process group of a run end by itself, then asks it to, then kills it. */
async function endGroups({ child }) {
  if (!child.pid) return;
  const running = child.exitCode === null && child.signalCode === null;
  const groups = running ? groupsUnder(child.pid) : [child.pid];
  const signal = (group, name) => {
    try {
      return process.kill(-group, name);
    } catch {
      return false; // the group is empty
    }
  };
  for (const name of running ? ["SIGTERM", "SIGKILL"] : [0, "SIGTERM", "SIGKILL"]) {
    for (let wait = 0; wait < 15; wait += 1) {
      const left = groups.filter((group) => signal(group, wait === 0 ? name : 0));
      if (left.length === 0) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** The process groups of a process and all its descendants; some clients give their server one of its own. */
function groupsUnder(top) {
  const groups = new Map([[top, top]]);
  const found = processes();
  for (let before = 0; before < groups.size; ) {
    before = groups.size;
    for (const { pid, parent, group } of found) if (groups.has(parent)) groups.set(pid, group);
  }
  return [...new Set(groups.values())];
}

/** All processes, from /proc; none where there is no /proc. */
function processes() {
  const pids = existsSync("/proc/self/stat") ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : [];
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8"); // pid (name) state ppid pgrp …
      const [, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").map(Number);
      return [{ pid: Number(pid), parent, group }];
    } catch {
      return []; // it has ended meanwhile
    }
  });
}
