// Tells patterm what opencode does: its sessions, its questions, the turns it takes. One word at a
// time, in order; opencode never waits for it.
import { spawn } from "node:child_process";

export const Patterm = async () => {
  const patterm = {{json:patterm}};
  let last = Promise.resolve();
  const tell = (event, given) => {
    const one = () =>
      new Promise((done) => {
        const hook = spawn(patterm, ["hook", event, JSON.stringify(given)], { stdio: "ignore" });
        hook.on("error", done).on("exit", done);
      });
    last = last.then(one);
  };
  const helpers = new Set(); // sessions of sub-agents: nobody types into them
  const busy = new Set(); // sessions at work; a sub-agent is a session of its own
  const asked = new Set(); // questions without an answer
  const limits = new Map(); // sessions that wait for the end of a limit, and what is said of it
  const state = () => {
    if (asked.size) tell("asks", {});
    else if (limits.size) tell("limited", { said: [...limits.values()].at(-1) });
    else tell(busy.size ? "works" : "rests", {});
  };
  // A first wait that is shorter than this is part of the work.
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
        if (info.parentID) helpers.add(info.id);
        else tell("session", { id: info.id });
      }
      if (type === "session.status") {
        const known = [busy.has(sessionID), limits.get(sessionID)];
        if (status?.type === "idle") busy.delete(sessionID);
        else busy.add(sessionID);
        // Busy at a limit: it tries again, and what comes of that is not known yet.
        const limit = status?.type === "busy" ? known[1] : limitOf(status ?? {});
        if (limit) limits.set(sessionID, limit);
        else limits.delete(sessionID);
        if (known[0] !== busy.has(sessionID) || known[1] !== limit) state();
      }
      // Its model answers: the limit is over.
      if (type === "message.part.updated" && limits.delete(sessionID ?? properties?.part?.sessionID)) state();
      if (type === "permission.asked" || type === "question.asked") {
        asked.add(id);
        state();
      }
      if (/^(permission|question)\.(replied|rejected)$/.test(type) && asked.delete(requestID ?? id)) state();
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      if (helpers.has(sessionID)) return;
      const prompt = parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).join("");
      tell("turn", { session: sessionID, prompt });
    },
  };
};
