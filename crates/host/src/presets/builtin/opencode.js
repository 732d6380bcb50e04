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
  const state = () => tell(asked.size ? "asks" : busy.size ? "works" : "rests", {});
  return {
    event: async ({ event: { type, properties } }) => {
      const { info, sessionID, status, id, requestID } = properties ?? {};
      if (type === "session.created" && info) {
        if (info.parentID) helpers.add(info.id);
        else tell("session", { id: info.id });
      }
      if (type === "session.status") {
        if (status?.type === "idle" ? !busy.delete(sessionID) : busy.has(sessionID)) return;
        if (status?.type !== "idle") busy.add(sessionID);
        state();
      }
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
