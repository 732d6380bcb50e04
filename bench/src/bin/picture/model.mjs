// The model of the agents in the picture: each prompt has its script, in the language of
// tests/agents/mock-model.

import { directed } from "../../../../tests/agents/mock/script.mjs";
import { startMock } from "../../../../tests/agents/mock/server.mjs";

const scripts = [
  [
    "[sub-agent:checker]",
    `mock: say The fix is reviewed and on the branch \`vat-once\`. Nothing is left to do.`,
  ],
  [
    "Invoices are off by a cent",
    `mock: call get_process_output ${JSON.stringify({ process_id: "tests" })}` +
      ` ;; call spawn_agent ${JSON.stringify({
        agent: "codex",
        name: "checker",
        agent_instructions: "Review the fix in src/vat.mjs and run the tests. If all is well, push it.",
      })}` +
      ` ;; say VAT is rounded on every line, so long invoices drift. It belongs on the total, once.\\n\\n` +
      `The tests pass with it. **checker** (codex) reviews the change; I am told when it is done.`,
  ],
  ["The discount is reviewed", `mock: say Good. The plan is done.`],
  [
    "Add a discount to the invoice",
    // Claude's tool search gives the model the tools that are not loaded from the start.
    `mock: call ToolSearch ${JSON.stringify({ query: "select:mcp__patterm__scratchpad_write" })}` +
      ` ;; call scratchpad_write ${JSON.stringify({
        name: "discount",
        content:
          "# Discount\n\n- [x] `gross` takes a discount in percent\n- [x] rounded once, after the VAT\n" +
          "- [ ] reviewed by Codex\n",
      })}` +
      ` ;; say \`gross\` takes a discount now, and rounds once, after the VAT. The plan is in the scratchpad **discount**.`,
  ],
  [
    "Review the discount",
    `mock: call scratchpad_read ${JSON.stringify({ name: "discount" })}` +
      ` ;; call exec_command ${JSON.stringify({
        cmd: "node --test",
        sandbox_permissions: "require_escalated",
        justification: "The discount looks right. May I run the tests?",
      })}` +
      ` ;; call send_message ${JSON.stringify({ target_process_id: "claude", message: "The discount is reviewed, and the tests pass." })}` +
      ` ;; say The tests pass, and Claude knows.`,
  ],
  [
    "Review the fix in src/vat.mjs",
    `mock: say The rounding is right: once, on the total. All tests pass. ;; call exec_command ${JSON.stringify({
      cmd: "git push origin vat-once",
      sandbox_permissions: "require_escalated",
      justification: "The fix is reviewed. May I push it?",
    })}` +
      ` ;; call send_message ${JSON.stringify({ target_process_id: "p1", message: "vat-once is reviewed and pushed." })}` +
      ` ;; say Pushed, and the lead knows.`,
  ],
];

const follow = directed();
const mock = await startMock((turn) => {
  const [, script] = scripts.find(([prompt]) => turn.text.includes(prompt)) ?? [null, "mock: say Done."];
  return follow({ ...turn, text: script });
});
console.log(JSON.stringify({ url: mock.url }));
process.stdin.on("data", () => {});
process.stdin.on("close", () => process.exit());
