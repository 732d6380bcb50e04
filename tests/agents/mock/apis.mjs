// The model APIs, each an adapter of two halves. `read` turns a request into
//   { items, tools, system, schema }
// where items are the messages, in order: { user: text }, { model: true } or
// { result: { text, failed } }. `writer` turns an answer into the API's events, or
// into one JSON value if the client did not request a stream.

/** The text of content that comes as a string or as a list of parts. */
function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => part.text ?? "").join("\n");
  return JSON.stringify(content);
}

/** How long a tool's definition is, as the CLI sends it. */
function bytesOf(tool) {
  return Buffer.byteLength(JSON.stringify(tool));
}

/** The texts of a message, one for each part that has any. */
function textsOf(content) {
  if (typeof content === "string") return [content];
  return (content ?? []).filter((part) => typeof part.text === "string").map((part) => part.text);
}

/** A limit of so many seconds, as a provider says it: for a moment (`rate`), or used up (`usage`). */
const until = (seconds) => Math.floor(Date.now() / 1000) + seconds;

const anthropic = {
  name: "anthropic-messages",
  path: /\/v1\/messages$/,
  streams: (body) => body.stream === true,
  read: (body) => ({
    tools: (body.tools ?? []).map((tool) => ({ name: tool.name, bytes: bytesOf(tool) })),
    system: textOf(body.system ?? ""),
    schema: body.output_format?.schema ?? body.output_config?.format?.schema,
    items: body.messages.flatMap(({ role, content }) => {
      if (role === "assistant") return [{ model: true }];
      if (role !== "user") return [];
      if (typeof content === "string") return [{ user: content }];
      return content.flatMap((block) => {
        if (block.type === "text") return [{ user: block.text }];
        if (block.type !== "tool_result") return [];
        return [{ result: { text: textOf(block.content ?? ""), failed: block.is_error === true } }];
      });
    }),
  }),
  error: (status) => {
    const types = { 400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error" };
    return { type: "error", error: { type: types[status] ?? "api_error", message: `mock error ${status}` } };
  },
  limit: (kind, seconds) => {
    const message =
      kind === "rate"
        ? "This request would exceed the rate limit for your organization of 50 requests per minute."
        : `You have reached your specified API usage limits. You will regain access on ${new Date(until(seconds) * 1000).toISOString()}.`;
    const unified = { status: "rejected", reset: until(seconds), "representative-claim": "five_hour", "5h-status": "rejected", "5h-reset": until(seconds) };
    const named = Object.entries(unified).map(([name, value]) => [`anthropic-ratelimit-unified-${name}`, String(value)]);
    const usage = kind === "usage" ? { ...Object.fromEntries(named), "x-should-retry": "false" } : {};
    return {
      status: 429,
      headers: { "retry-after": String(seconds), ...usage },
      body: { type: "error", error: { type: "rate_limit_error", message } },
    };
  },
  writer(out, { id, model, stream }) {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: `msg_${id}`, type: "message", role: "assistant", model, usage };
    const content = [];
    const event = (value) => stream && out.event(value);
    let begun = false;
    let open = null;
    const begin = () => {
      if (begun) return;
      begun = true;
      event({ type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } });
    };
    const close = () => {
      if (open) event({ type: "content_block_stop", index: content.length - 1 });
      open = null;
    };
    const part = (type, key, delta) => {
      begin();
      if (open !== type) {
        close();
        open = type;
        content.push({ type, [key]: "" });
        event({ type: "content_block_start", index: content.length - 1, content_block: { type, [key]: "" } });
      }
      content.at(-1)[key] += delta;
      event({ type: "content_block_delta", index: content.length - 1, delta: { type: `${type}_delta`, [key]: delta } });
    };
    return {
      text: (delta) => part("text", "text", delta),
      think: (delta) => part("thinking", "thinking", delta),
      call(tool, args) {
        begin();
        close();
        const block = { type: "tool_use", id: `toolu_${id}`, name: tool.name, input: args };
        content.push(block);
        const index = content.length - 1;
        event({ type: "content_block_start", index, content_block: { ...block, input: {} } });
        const delta = { type: "input_json_delta", partial_json: JSON.stringify(args) };
        event({ type: "content_block_delta", index, delta });
        event({ type: "content_block_stop", index });
      },
      end() {
        begin();
        close();
        const reason = content.at(-1)?.type === "tool_use" ? "tool_use" : "end_turn";
        const stop = { stop_reason: reason, stop_sequence: null };
        if (!stream) return out.json(200, { ...message, ...stop, content });
        event({ type: "message_delta", delta: stop, usage: { output_tokens: 1 } });
        event({ type: "message_stop" });
        out.finish();
      },
    };
  },
};

const openaiError = (status) => {
  const type = status === 429 ? "rate_limit_exceeded" : status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message: `mock error ${status}`, type, code: type } };
};

const openaiLimit = (kind, seconds) => {
  const error =
    kind === "rate"
      ? { message: `Rate limit reached for mock-model. Please try again in ${seconds}s.`, type: "requests", code: "rate_limit_exceeded" }
      : { message: "The usage limit has been reached", type: "usage_limit_reached", plan_type: "plus", resets_at: until(seconds), resets_in_seconds: seconds };
  return { status: 429, headers: { "retry-after": String(seconds) }, body: { error } };
};

const responses = {
  name: "openai-responses",
  path: /\/v1\/responses$/,
  streams: (body) => body.stream === true,
  read: (body) => ({
    // A namespace contains tools; both names together are the tool's.
    tools: (body.tools ?? []).flatMap((tool) =>
      tool.type === "namespace"
        ? tool.tools.map((inner) => ({
            name: `${tool.name}__${inner.name}`,
            namespace: tool.name,
            inner: inner.name,
            bytes: bytesOf(inner),
          }))
        : [{ name: tool.name ?? tool.type, ...(tool.type === "custom" && { custom: true }) }],
    ),
    system: body.instructions ?? "",
    schema: body.text?.format?.schema,
    items: (typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input ?? []).flatMap((item) => {
      if (item.role === "user") return textsOf(item.content).map((user) => ({ user }));
      if (["function_call_output", "custom_tool_call_output"].includes(item.type)) {
        return [{ result: { text: textOf(item.output), failed: false } }];
      }
      const model = item.role === "assistant" || ["function_call", "custom_tool_call", "reasoning"].includes(item.type);
      return model ? [{ model: true }] : [];
    }),
  }),
  error: openaiError,
  limit: openaiLimit,
  writer(out, { id, model, stream }) {
    const created = { id: `resp_${id}`, object: "response", model, status: "in_progress", output: [] };
    const output = [];
    const event = (value) => stream && out.event(value);
    let begun = false;
    let open = null; // the message or reasoning that is being written
    const begin = () => {
      if (!begun) event({ type: "response.created", response: created });
      begun = true;
    };
    const add = (item) => {
      begin();
      output.push(item);
      event({ type: "response.output_item.added", output_index: output.length - 1, item });
      return item;
    };
    const done = () => {
      const output_index = output.length - 1;
      if (open?.type === "message") {
        const item_id = open.id;
        const { text } = open.content[0];
        event({ type: "response.output_text.done", item_id, output_index, content_index: 0, text });
      }
      if (open) event({ type: "response.output_item.done", output_index, item: open });
      open = null;
    };
    return {
      text(delta) {
        if (open?.type !== "message") {
          done();
          const opening = { type: "message", id: `msg_${id}_${output.length}`, role: "assistant", content: [] };
          open = add(opening);
          open.content = [{ type: "output_text", text: "", annotations: [] }];
        }
        open.content[0].text += delta;
        const place = { item_id: open.id, output_index: output.length - 1, content_index: 0 };
        event({ type: "response.output_text.delta", ...place, delta });
      },
      think(delta) {
        if (open?.type !== "reasoning") {
          done();
          open = add({ type: "reasoning", id: `rs_${id}_${output.length}`, summary: [] });
          const place = { item_id: open.id, output_index: output.length - 1, summary_index: 0 };
          event({ type: "response.reasoning_summary_part.added", ...place, part: { type: "summary_text", text: "" } });
          open.summary = [{ type: "summary_text", text: "" }];
        }
        open.summary[0].text += delta;
        const place = { item_id: open.id, output_index: output.length - 1, summary_index: 0 };
        event({ type: "response.reasoning_summary_text.delta", ...place, delta });
      },
      call(tool, args) {
        done();
        const name = tool.inner ?? tool.name;
        const common = { call_id: `call_${id}`, name, ...(tool.namespace && { namespace: tool.namespace }) };
        open = add(
          tool.custom
            ? { type: "custom_tool_call", id: `ctc_${id}`, ...common, input: args.input }
            : { type: "function_call", id: `fc_${id}`, ...common, arguments: JSON.stringify(args) },
        );
        done();
      },
      end() {
        begin();
        done();
        const usage = {
          input_tokens: 1,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 1,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 2,
        };
        const completed = { ...created, status: "completed", output, usage };
        if (!stream) return out.json(200, completed);
        event({ type: "response.completed", response: completed });
        out.finish();
      },
    };
  },
};

const chat = {
  name: "openai-chat",
  path: /\/v1\/chat\/completions$/,
  streams: (body) => body.stream === true,
  read: (body) => ({
    tools: (body.tools ?? []).map((tool) => ({ name: tool.function.name, bytes: bytesOf(tool) })),
    system: body.messages.filter((m) => m.role === "system").map((m) => textOf(m.content)).join("\n"),
    schema: body.response_format?.json_schema?.schema,
    items: body.messages.flatMap(({ role, content }) => {
      if (role === "user") return textsOf(content).map((user) => ({ user }));
      if (role === "tool") return [{ result: { text: textOf(content), failed: false } }];
      return role === "assistant" ? [{ model: true }] : [];
    }),
  }),
  error: openaiError,
  limit: openaiLimit,
  writer(out, { id, model, stream }) {
    const head = { id: `chatcmpl_${id}`, created: 0, model };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const message = { role: "assistant", content: null };
    let finish_reason = "stop";
    let begun = false;
    const chunk = (delta, finish = null) => {
      const choices = [{ index: 0, delta, finish_reason: finish }];
      return { ...head, object: "chat.completion.chunk", choices };
    };
    const emit = (delta) => {
      if (stream) out.event(chunk(begun ? delta : { role: "assistant", ...delta }));
      begun = true;
    };
    return {
      text(content) {
        message.content = (message.content ?? "") + content;
        emit({ content });
      },
      think: (reasoning_content) => emit({ reasoning_content }),
      call(tool, args) {
        const call = { id: `call_${id}`, type: "function", function: { name: tool.name, arguments: JSON.stringify(args) } };
        message.tool_calls = [call];
        finish_reason = "tool_calls";
        emit({ tool_calls: [{ index: 0, ...call }] });
      },
      end() {
        if (!stream) {
          const choices = [{ index: 0, message, finish_reason }];
          return out.json(200, { ...head, object: "chat.completion", choices, usage });
        }
        out.event({ ...chunk({}, finish_reason), usage });
        out.event("[DONE]");
        out.finish();
      },
    };
  },
};

const gemini = {
  name: "gemini",
  path: /:(generateContent|streamGenerateContent)$/,
  streams: (body, url) => url.pathname.endsWith(":streamGenerateContent"),
  read: (body) => ({
    tools: (body.tools ?? [])
      .flatMap((tool) => tool.functionDeclarations ?? [])
      .map((tool) => ({ name: tool.name, bytes: bytesOf(tool) })),
    system: textsOf(body.systemInstruction?.parts).join("\n"),
    schema: body.generationConfig?.responseJsonSchema ?? body.generationConfig?.responseSchema,
    items: body.contents.flatMap(({ role, parts = [] }) => {
      if (role === "model") return [{ model: true }];
      return parts.flatMap((part) => {
        if (typeof part.text === "string") return [{ user: part.text }];
        if (!part.functionResponse) return [];
        const { response } = part.functionResponse;
        const text = textOf(response.error ?? response.output ?? response);
        return [{ result: { text, failed: "error" in response } }];
      });
    }),
  }),
  error: (status) => {
    const names = { 400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE" };
    return { error: { code: status, message: `mock error ${status}`, status: names[status] ?? "INTERNAL" } };
  },
  limit: (kind, seconds) => {
    const quota = kind === "rate" ? "GenerateRequestsPerMinutePerProjectPerModel" : "GenerateRequestsPerDayPerProjectPerModel";
    const type = (name) => `type.googleapis.com/google.rpc.${name}`;
    const details = [
      { "@type": type("QuotaFailure"), violations: [{ quotaMetric: "generate_content_requests", quotaId: quota, quotaValue: "250" }] },
      { "@type": type("RetryInfo"), retryDelay: `${seconds}s` },
    ];
    const message = `You exceeded your current quota, please check your plan. Please retry in ${seconds}s.`;
    return { status: 429, headers: {}, body: { error: { code: 429, message, status: "RESOURCE_EXHAUSTED", details } } };
  },
  writer(out, { id, model, stream }) {
    const parts = [];
    const result = (some, finishReason) => ({
      candidates: [{ index: 0, content: { role: "model", parts: some }, ...(finishReason && { finishReason }) }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      modelVersion: model,
      responseId: id,
    });
    const part = (value) => {
      parts.push(value);
      if (stream) out.event(result([value]));
    };
    return {
      text: (text) => part({ text }),
      think: (text) => part({ text, thought: true }),
      call: (tool, args) => part({ functionCall: { id, name: tool.name, args } }),
      end() {
        if (!stream) return out.json(200, result(parts, "STOP"));
        out.event(result([{ text: "" }], "STOP"));
        out.finish();
      },
    };
  },
};

export const apis = [anthropic, responses, chat, gemini];
