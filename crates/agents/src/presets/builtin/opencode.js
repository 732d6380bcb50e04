// Reports to patterm what opencode does: its sessions, its questions, the turns it takes. One
// report at a time, in order; opencode never waits for it. A report may be late, so it says when
// its event happened.
import { spawn } from "node:child_process";

export const Patterm = async () => {
  const patterm = {{json:patterm}};
  let last = Promise.resolve();
  const report = (event, data) => {
    const given = { ...data, at_ms: Date.now() };
    const one = () =>
      new Promise((done) => {
        const hook = spawn(patterm, ["hook", event, JSON.stringify(given)], { stdio: "ignore" });
        hook.on("error", done).on("exit", done);
      });
    last = last.then(one);
  };
  const subagents = new Set(); // sessions of subagents: nobody types into them
  const busy = new Set(); // working sessions; a subagent is a session of its own
  const asked = new Set(); // unanswered questions
  const limits = new Map(); // sessions that wait for the end of a limit, with its message
  const state = () => {
    if (asked.size) report("asks", {});
    else if (limits.size) report("limited", { said: [...limits.values()].at(-1) });
    else report(busy.size ? "works" : "rests", {});
  };
  // A first wait shorter than this is part of the work.
  const SHORT_WAIT_MS = 5_000;
  const LIMIT = /limit|quota|credit|too many requests|429/i;
  const limitOf = ({ type, attempt, message, next }) =>
    type === "retry" && LIMIT.test(message) && (attempt > 1 || next - Date.now() > SHORT_WAIT_MS)
      ? `${message}; it tries again at ${new Date(next).toISOString()}`
      : undefined;
  return {
    event: async ({ event: { type, properties } }) => {
      const { info, sessionID, status, id, requestID } = properties ?? {};
      if (type === "session.created" && info) {
        if (info.parentID) subagents.add(info.id);
        else report("session", { id: info.id });
      }
      if (type === "session.status") {
        const known = [busy.has(sessionID), limits.get(sessionID)];
        if (status?.type === "idle") busy.delete(sessionID);
        else busy.add(sessionID);
        // Busy at a limit: it retries, and the result is not known yet.
        const limit = status?.type === "busy" ? known[1] : limitOf(status ?? {});
        if (limit) limits.set(sessionID, limit);
        else limits.delete(sessionID);
        if (known[0] !== busy.has(sessionID) || known[1] !== limit) state();
      }
      // Its model responds: the limit is over.
      if (type === "message.part.updated" && limits.delete(sessionID ?? properties?.part?.sessionID)) state();
      if (type === "permission.asked" || type === "question.asked") {
        asked.add(id);
        state();
      }
      if (/^(permission|question)\.(replied|rejected)$/.test(type) && asked.delete(requestID ?? id)) state();
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      if (subagents.has(sessionID)) return;
      const prompt = parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).join("");
      report("turn", { session: sessionID, prompt });
    },
  };
};
