// Drives a program written with one of the MCP SDKs. It finds its job in SDK_JOB,
// JSON of the installation, the mode and the server, and prints one line of JSON:
// { version, revision, tools: [name], result: the answer of tools/call whoami,
// failure: that of help for a topic that does not exist }.

import { fileURLToPath } from "node:url";
import { answerOf } from "./driver.mjs";

export async function overSdk(rig, interpreter, program) {
  rig.modes("legacy", "auto", "modern");
  const { install, mode, server } = rig;
  const file = fileURLToPath(new URL(program, import.meta.url));
  const { out } = await rig.run(interpreter, [file], { SDK_JOB: JSON.stringify({ install, mode, server }) });
  const { result, failure, ...rest } = JSON.parse(out);
  rig.did("tools/list");
  rig.did("tools/call whoami");
  const kind = failure.structuredContent?.error?.kind;
  if (!failure.isError || kind !== "not_found") throw new Error(`help failed as ${JSON.stringify(failure)}`);
  rig.did("tools/call help: not_found, as it should");
  return { ...rest, whoami: answerOf(result) };
}
