//! The MCP server that rmcp calls: its identity, its tools, and their calls. One value per
//! connection.

use std::convert::Infallible;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    Implementation, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{
    RequestContext, RoleServer, RxJsonRpcMessage, SubscriptionContext, TxJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::{ServerHandler, model::JsonRpcMessage};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{INSTRUCTIONS, OUTSIDE_INSTRUCTIONS};
use crate::VERSION;
use crate::caller::Caller;
use crate::host::Host;
use crate::shared_tools::SharedToolsClient;
use crate::tools::{Call, ErrorKind, Registry, ToolError, named};

/// The tools as an MCP server.
#[derive(Debug, Clone)]
pub(crate) struct McpService {
    pub(crate) host: Arc<Host>,
    pub(crate) tools: Arc<Registry>,
    /// The caller of the connection.
    pub(crate) caller: Caller,
    /// The shared servers, for this caller.
    pub(crate) shared_tools: Arc<SharedToolsClient>,
}

impl ServerHandler for McpService {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools();
        let capabilities = match self.host.shared.is_empty() {
            true => capabilities.build(),
            false => capabilities.enable_tool_list_changed().build(),
        };
        let mut info = InitializeResult::new(capabilities)
            .with_server_info(Implementation::new("patterm", VERSION).with_title("patterm"))
            .with_instructions(self.instructions());
        // The revision for a client that asks for an unknown one.
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // Record the negotiated revision, not the requested one.
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(result)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        (!self.host.shared.is_empty()).then(|| {
            let mut accepted = SubscriptionFilter::default();
            accepted.tools_list_changed = requested.tools_list_changed;
            accepted
        })
    }

    /// Notifies a client of a stateless revision whenever its list of tools changes.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared_tools.changes();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => {
                    let sent = context.sink().notify_tool_list_changed().await;
                    if changed.is_err() || sent.is_err() {
                        context.cancelled().await;
                        return Ok(());
                    }
                }
            }
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.descriptors()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(call) = context.extensions.get::<Call>().cloned() else {
            return Err(ErrorData::internal_error("a call without its context", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let Some(answer) = self.tools.call(&request.name, arguments, call) else {
            let names: Vec<_> = self.tools.names().collect();
            let message =
                format!("unknown tool `{}`; the tools are {}", request.name, names.join(", "));
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, message, None));
        };
        let answer = answer.await.and_then(|answer| self.fitting(answer));
        // An internal error that a tool returns reads like any other failure; a panic
        // does not come here and becomes -32603.
        Ok(answer.unwrap_or_else(|error| failure(&error)).into())
    }
}

fn failure(error: &ToolError) -> CallToolResult {
    let mut result = CallToolResult::structured_error(error.structured());
    result.content = vec![ContentBlock::text(error.text())];
    result
}

impl McpService {
    /// What a model must know from the start: an agent learns its identity and its parent,
    /// a caller without a pane learns how to wait.
    fn instructions(&self) -> String {
        let processes = &self.host.panes.processes;
        let Some(me) = self.caller.process().and_then(|id| processes.get(id)) else {
            return OUTSIDE_INSTRUCTIONS.to_owned();
        };
        let place = match processes.agent_above(&me) {
            Some(above) => format!(
                "You are the sub-agent {} ({}), started by {} ({}). When your task is done, or you \
                 are stuck, report to it with send_message (target_process_id {}), then end your \
                 turn.",
                me.name, me.id, above.name, above.id, above.id
            ),
            None => format!(
                "You are {} ({}). Watch the agents that you start with spawn_agent, and close them \
                 when they are done.",
                me.name, me.id
            ),
        };
        let text = format!("{INSTRUCTIONS}\n\n{place}");
        let preset = self.host.agents.presets.of(&me);
        let Some(form) = preset.as_ref().and_then(|preset| preset.tool_name.as_ref()) else {
            return text;
        };
        // Its CLI may have tools with similar names; codex has its own spawn_agent.
        let example = form.replace("{{tool}}", "NAME");
        format!(
            "{}\nYou know patterm's tools as {example}. Tools of your own CLI with similar names, \
             such as one that starts agents, know nothing about patterm: use patterm's.",
            named(&text, form, &self.tools)
        )
    }

    /// The result both as text and as a value, if it is not too large.
    fn fitting(&self, answer: Value) -> Result<CallToolResult, ToolError> {
        let text = answer.to_string();
        let escapes = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
        check_size(2 * text.len() + escapes, self.host.limits.answer_bytes)?;
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(answer);
        Ok(result)
    }
}

/// Refuses a result that is too large, and says how to get less.
pub(crate) fn check_size(bytes: usize, limit: usize) -> Result<(), ToolError> {
    if bytes <= limit {
        return Ok(());
    }
    let message = format!(
        "the result would have {bytes} bytes, more than the {limit} that clients accept; ask for \
         less: fewer lines, a smaller max_bytes or limit, a later since_offset"
    );
    Err(ToolError::new(ErrorKind::Limit, message).with("limit_bytes", limit))
}

/// The channel for messages that rmcp sends by itself (notices of subscriptions). Requests
/// never come this way: the connection passes them to the service directly.
#[derive(Debug)]
pub(crate) struct Notices(pub(crate) mpsc::Sender<Vec<u8>>);

impl Transport<RoleServer> for Notices {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let notices = self.0.clone();
        async move {
            if let JsonRpcMessage::Notification(_) = &message
                && let Ok(body) = serde_json::to_vec(&message)
            {
                // A closed connection accepts no notices.
                let _ = notices.send(body).await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.0.closed().await;
        None
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
