// A mock of the model APIs that the MCP clients talk to: Anthropic messages,
// OpenAI responses and chat completions, Gemini generateContent. Loopback only,
// on a port the kernel chooses.
//
// Each API is an adapter of two halves: `read` turns a request into a turn,
//   { api, tools: [{ name, … }], results: [{ text, failed }] }
// and `write` turns a reply into the API's events. Between them a script, a
// function from turn to reply, decides what the model does:
//   { call: tool, args: {…} }   call one of the turn's tools
//   { text: "…" }               say something and end
// `results` holds every tool result in the conversation, in order; `failed` is true
// where the API says so (the two of OpenAI have no way to).
//
// The mock also is the clients' HTTP proxy: a client that wants to reach anything
// but loopback asks here, is refused, and is written down.

import http from "node:http";

/** The script that calls the tool named so once, and ends when its result is there. */
export function callOnce(suffix) {
  return (turn) => {
    if (turn.results.length > 0) return { text: "Done." };
    const tool = turn.tools.find((t) => t.name.endsWith(suffix));
    return tool ? { call: tool, args: {} } : { text: "OK" };
  };
}

/** Starts the mock. `turns` lists what was asked and answered, `other` all other requests, `refused` the hosts it refused to reach. */
export async function startMock(script) {
  const mock = { turns: [], other: [], refused: [] };
  const server = http.createServer(async (request, response) => {
    try {
      if (request.url.startsWith("http:")) return refuse(new URL(request.url).host, response);
      await answer(mock, script, request, response);
    } catch (error) {
      mock.other.push(`${request.method} ${request.url}: ${error.stack}`);
      json(response, 500, { error: { type: "mock_error", message: String(error) } });
    }
  });
  const refuse = (host, response) => {
    mock.refused.push(host);
    json(response, 403, { error: "no traffic but loopback" });
  };
  server.on("connect", (request, socket) => {
    mock.refused.push(request.url);
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

async function answer(mock, script, request, response) {
  const url = new URL(request.url, "http://mock");
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);

  const api = request.method === "POST" && apis.find((a) => a.path.test(url.pathname));
  if (!api) {
    mock.other.push(`${request.method} ${url.pathname}`);
    const side = sideAnswers.find(([path]) => path.test(url.pathname));
    return json(response, side ? 200 : 404, side ? side[1] : { error: { message: "not in the mock" } });
  }

  const body = JSON.parse(Buffer.concat(chunks).toString());
  const turn = { api: api.name, ...api.read(body) };
  const reply = await script(turn);
  mock.turns.push({ ...turn, reply });
  const id = `mock_${mock.turns.length}`;
  const model = body.model ?? "mock-model";
  api.write({ response, id, model, reply, stream: api.streams(body, url) });
}

// Requests beside the turns: counting tokens, listing models.
const sideAnswers = [
  [/\/count_tokens$/, { input_tokens: 1 }],
  [/:countTokens$/, { totalTokens: 1 }],
  [/\/models$/, { object: "list", data: [], models: [], has_more: false }],
  [/^\/(api\/hello)?$/, {}],
];

function json(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

/** Server-sent events; an event with a `type` also is named so. */
function sse(response, events) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const event of events) {
    if (event.type) response.write(`event: ${event.type}\n`);
    response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
  }
  response.end();
}

/** The text of a tool result, that comes as a string or as a list of content parts. */
function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => part.text ?? "").join("\n");
  return JSON.stringify(content);
}

const anthropic = {
  name: "anthropic-messages",
  path: /\/v1\/messages$/,
  streams: (body) => body.stream === true,
  read: (body) => ({
    tools: (body.tools ?? []).map(({ name }) => ({ name })),
    results: body.messages
      .flatMap((m) => (Array.isArray(m.content) ? m.content : []))
      .filter((block) => block.type === "tool_result")
      .map((block) => ({ text: textOf(block.content ?? ""), failed: block.is_error === true })),
  }),
  write({ response, id, model, reply, stream }) {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const stop = { stop_reason: reply.call ? "tool_use" : "end_turn", stop_sequence: null };
    const block = reply.call
      ? { type: "tool_use", id: `toolu_${id}`, name: reply.call.name, input: reply.args }
      : { type: "text", text: reply.text };
    const message = { id: `msg_${id}`, type: "message", role: "assistant", model, usage };
    if (!stream) return json(response, 200, { ...message, ...stop, content: [block] });

    const [opening, delta] = reply.call
      ? [{ ...block, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(reply.args) }]
      : [{ ...block, text: "" }, { type: "text_delta", text: reply.text }];
    sse(response, [
      { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
      { type: "content_block_start", index: 0, content_block: opening },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: stop, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ]);
  },
};

const responses = {
  name: "openai-responses",
  path: /\/v1\/responses$/,
  streams: (body) => body.stream === true,
  read: (body) => ({
    // A namespace holds tools of its own; the two names together are the tool's.
    tools: (body.tools ?? []).flatMap((tool) =>
      tool.type === "namespace"
        ? tool.tools.map(({ name }) => ({ name: `${tool.name}__${name}`, namespace: tool.name, inner: name }))
        : [{ name: tool.name ?? tool.type }],
    ),
    results: (Array.isArray(body.input) ? body.input : [])
      .filter((item) => item.type === "function_call_output")
      .map((item) => ({ text: textOf(item.output), failed: false })),
  }),
  write({ response, id, model, reply, stream }) {
    const item = reply.call
      ? {
          type: "function_call",
          id: `fc_${id}`,
          call_id: `call_${id}`,
          name: reply.call.inner ?? reply.call.name,
          ...(reply.call.namespace && { namespace: reply.call.namespace }),
          arguments: JSON.stringify(reply.args),
        }
      : {
          type: "message",
          id: `msg_${id}`,
          role: "assistant",
          content: [{ type: "output_text", text: reply.text, annotations: [] }],
        };
    const usage = {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    };
    const created = { id: `resp_${id}`, object: "response", model, status: "in_progress", output: [] };
    const completed = { ...created, status: "completed", output: [item], usage };
    if (!stream) return json(response, 200, completed);
    sse(response, [
      { type: "response.created", response: created },
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: completed },
    ]);
  },
};

const chat = {
  name: "openai-chat",
  path: /\/v1\/chat\/completions$/,
  streams: (body) => body.stream === true,
  read: (body) => ({
    tools: (body.tools ?? []).map((tool) => ({ name: tool.function.name })),
    results: body.messages
      .filter((m) => m.role === "tool")
      .map((m) => ({ text: textOf(m.content), failed: false })),
  }),
  write({ response, id, model, reply, stream }) {
    const call = reply.call && {
      id: `call_${id}`,
      type: "function",
      function: { name: reply.call.name, arguments: JSON.stringify(reply.args) },
    };
    const finish_reason = call ? "tool_calls" : "stop";
    const said = call ? { content: null } : { content: reply.text };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const head = { id: `chatcmpl_${id}`, created: 0, model };
    if (!stream) {
      const message = { role: "assistant", ...said, ...(call && { tool_calls: [call] }) };
      const choices = [{ index: 0, message, finish_reason }];
      return json(response, 200, { ...head, object: "chat.completion", choices, usage });
    }
    const chunk = (delta, finish) => ({
      ...head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    sse(response, [
      chunk({ role: "assistant", ...said, ...(call && { tool_calls: [{ index: 0, ...call }] }) }, null),
      { ...chunk({}, finish_reason), usage },
      "[DONE]",
    ]);
  },
};

const gemini = {
  name: "gemini",
  path: /:(generateContent|streamGenerateContent)$/,
  streams: (body, url) => url.pathname.endsWith(":streamGenerateContent"),
  read: (body) => ({
    tools: (body.tools ?? [])
      .flatMap((tool) => tool.functionDeclarations ?? [])
      .map(({ name }) => ({ name })),
    results: body.contents
      .flatMap((content) => content.parts ?? [])
      .filter((part) => part.functionResponse)
      .map(({ functionResponse: { response } }) => ({
        text: textOf(response.error ?? response.output ?? response),
        failed: "error" in response,
      })),
  }),
  write({ response, id, model, reply, stream }) {
    const part = reply.call ? { functionCall: { id, name: reply.call.name, args: reply.args } } : { text: reply.text };
    const result = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      modelVersion: model,
      responseId: id,
    };
    if (stream) sse(response, [result]);
    else json(response, 200, result);
  },
};

const apis = [anthropic, responses, chat, gemini];
