//! Turns a method and raw parameters into the typed request that rmcp handles; errors name the
//! parameter that is invalid.

use patterm_wire::ErrorObject;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientRequest, CompleteRequestParams,
    DiscoverRequestParams, Implementation, InitializeRequestParams, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, PaginatedRequestParams,
    PingRequest, ProtocolVersion, Request, RequestMetaObject, RequestOptionalParam,
    SubscriptionsListenRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The parameters of a request: an object, without its `_meta`.
#[derive(Debug, Default)]
pub(crate) struct RequestParams {
    members: Map<String, Value>,
    meta: RequestMetaObject,
    progress_token: Option<Box<RawValue>>,
}

impl RequestParams {
    /// Parses raw parameters. Absent ones are empty.
    pub(crate) fn read(params: Option<&RawValue>) -> Result<Self, ErrorObject> {
        let Some(params) = params else { return Ok(Self::default()) };
        let Ok(Value::Object(mut members)) = serde_json::from_str(params.get()) else {
            return Err(ErrorObject::invalid_params("`params` must be an object"));
        };
        let Some(meta) = members.remove("_meta").filter(|meta| !meta.is_null()) else {
            return Ok(Self { members, ..Self::default() });
        };
        let progress_token = meta
            .get("progressToken")
            .filter(|token| token.is_string() || token.is_number())
            .and_then(|token| to_raw_value(token).ok());
        let meta = serde_json::from_value(meta)
            .map_err(|e| ErrorObject::invalid_params(format!("`params._meta` is invalid: {e}")))?;
        Ok(Self { members, meta, progress_token })
    }

    /// The token for progress notifications.
    pub(crate) fn take_progress_token(&mut self) -> Option<Box<RawValue>> {
        self.progress_token.take()
    }

    /// A text in the metadata.
    pub(crate) fn meta_text(&self, name: &str) -> Option<&str> {
        self.meta.get(name)?.as_str()
    }

    /// The arguments of a tool that is called as a method.
    pub(crate) fn into_members(self) -> Map<String, Value> {
        self.members
    }

    fn typed<T: DeserializeOwned>(self) -> Result<T, ErrorObject> {
        serde_json::from_value(Value::Object(self.members))
            .map_err(|e| ErrorObject::invalid_params(format!("`params` is invalid: {e}")))
    }

    fn member<T: DeserializeOwned>(
        &mut self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, ErrorObject> {
        match self.members.remove(name).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => serde_json::from_value(value).map(Some).map_err(|_| {
                ErrorObject::invalid_params(format!("`params.{name}` must be {expected}"))
            }),
        }
    }

    /// Whether the request declares a stateless revision.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.protocol_version().is_some_and(|version| !version.has_initialize())
    }
}

/// The typed form of an MCP request, with its metadata; an unknown method is `-32601`.
pub(crate) fn ask(
    method: &str,
    mut params: RequestParams,
) -> Result<(ClientRequest, RequestMetaObject), ErrorObject> {
    let meta = params.meta.clone();
    let request = match method {
        "tools/call" => ClientRequest::CallToolRequest(Request::new(tool_call(params)?)),
        "tools/list" => {
            let list: ListToolsRequest = page(&mut params)?;
            ClientRequest::ListToolsRequest(list)
        }
        "ping" => ClientRequest::PingRequest(PingRequest::default()),
        "initialize" => ClientRequest::InitializeRequest(Request::new(initialize(params)?)),
        "server/discover" => {
            ClientRequest::DiscoverRequest(Request::new(DiscoverRequestParams::default()))
        }
        "resources/list" => {
            let list: ListResourcesRequest = page(&mut params)?;
            ClientRequest::ListResourcesRequest(list)
        }
        "resources/templates/list" => {
            let list: ListResourceTemplatesRequest = page(&mut params)?;
            ClientRequest::ListResourceTemplatesRequest(list)
        }
        "prompts/list" => {
            let list: ListPromptsRequest = page(&mut params)?;
            ClientRequest::ListPromptsRequest(list)
        }
        "completion/complete" => {
            let complete: CompleteRequestParams = params.typed()?;
            ClientRequest::CompleteRequest(Request::new(complete))
        }
        "subscriptions/listen" => {
            let listen: SubscriptionsListenRequestParams = params.typed()?;
            ClientRequest::SubscriptionsListenRequest(Request::new(listen))
        }
        _ => return Err(ErrorObject::method_not_found(method)),
    };
    Ok((request, meta))
}

fn tool_call(mut params: RequestParams) -> Result<CallToolRequestParams, ErrorObject> {
    let Some(name) = params.member::<String>("name", "a string, the name of a tool")? else {
        return Err(ErrorObject::invalid_params(
            "`params.name` is missing; it is the name of the tool",
        ));
    };
    let mut call = CallToolRequestParams::new(name);
    call.arguments = params.member("arguments", "an object")?;
    Ok(call)
}

/// Accepts incomplete requests from older or careless clients: missing members get the most
/// limited value.
fn initialize(mut params: RequestParams) -> Result<InitializeRequestParams, ErrorObject> {
    let version = params.member("protocolVersion", "a string, a protocol revision")?;
    let capabilities: Option<ClientCapabilities> = params.member("capabilities", "an object")?;
    let client: Option<Implementation> =
        params.member("clientInfo", "an object with a name and a version")?;
    let client = client.unwrap_or_else(|| Implementation::new("unknown", "0"));
    Ok(InitializeRequestParams::new(capabilities.unwrap_or_default(), client)
        .with_protocol_version(version.unwrap_or(ProtocolVersion::V_2025_06_18)))
}

fn page<M: Default>(
    params: &mut RequestParams,
) -> Result<RequestOptionalParam<M, PaginatedRequestParams>, ErrorObject> {
    let cursor: Option<String> = params.member("cursor", "a string")?;
    Ok(RequestOptionalParam::with_param(PaginatedRequestParams::default().with_cursor(cursor)))
}
