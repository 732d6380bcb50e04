//! The peer for tool calls: a minimal rmcp server with one tool on standard input and output. The result
//! is given on the command line, so that both sides return the same bytes.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, InitializeResult,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;

struct Bare {
    answer: Value,
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::structured(self.answer.clone()).into())
    }
}

fn main() -> anyhow::Result<()> {
    let answer = std::env::args().nth(1).unwrap_or_else(|| "{}".into());
    let bare = Bare { answer: serde_json::from_str(&answer)? };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        bare.serve(rmcp::transport::stdio()).await?.waiting().await?;
        Ok(())
    })
}
