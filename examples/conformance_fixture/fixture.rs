//! The handler: what the protocol asks, handed on to the module that knows.
#![expect(
    deprecated,
    reason = "the suite of 2025-11-25 asks for what later revisions take away"
)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    LoggingMessageNotificationParam, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ResourceUpdatedNotificationParam,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::broadcast;

use crate::sealed::Seal;
use crate::{prompts, resources, tools};

/// Changes that wait for a slow listener; it is told of the latest ones.
const CHANGES_MAX: usize = 16;

/// A list that became another one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

/// What all clients share.
#[derive(Debug)]
struct Shared {
    changes: broadcast::Sender<Change>,
    has_more_tools: AtomicBool,
    has_more_prompts: AtomicBool,
    seal: Seal,
}

/// What one session has said. Without sessions all clients share one.
#[derive(Debug)]
struct Session {
    level: Mutex<LoggingLevel>,
    watched: Mutex<BTreeSet<String>>,
}

/// Tools, resources and prompts of the suite, as one handler.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let shared = Shared {
            changes: broadcast::channel(CHANGES_MAX).0,
            has_more_tools: AtomicBool::new(false),
            has_more_prompts: AtomicBool::new(false),
            seal: Seal::new(),
        };
        Self {
            shared: Arc::new(shared),
            session: Arc::new(Session::new()),
        }
    }

    /// The same, for a client with a session of its own.
    pub(crate) fn in_a_session(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            session: Arc::new(Session::new()),
        }
    }

    pub(crate) fn seal(&self) -> &Seal {
        &self.shared.seal
    }

    /// Adds an item to a list, or takes it away again, and tells who listens.
    pub(crate) async fn change(&self, change: Change, context: &RequestContext<RoleServer>) {
        let has_more = match change {
            Change::Tools => &self.shared.has_more_tools,
            Change::Prompts => &self.shared.has_more_prompts,
        };
        has_more.fetch_xor(true, Ordering::Relaxed);
        // An error says that nobody listens.
        let _nobody = self.shared.changes.send(change);
        if is_legacy(context) {
            let _gone = match change {
                Change::Tools => context.peer.notify_tool_list_changed().await,
                Change::Prompts => context.peer.notify_prompt_list_changed().await,
            };
        }
    }

    /// A log message, where the client wants those: by its session, later by its request.
    pub(crate) async fn log(&self, text: &str, context: &RequestContext<RoleServer>) {
        let wanted = match is_legacy(context) {
            true => Some(*lock(&self.session.level)),
            false => context.meta.log_level(),
        };
        let level = LoggingLevel::Info;
        if wanted.is_some_and(|wanted| wanted as u8 <= level as u8) {
            let message = LoggingMessageNotificationParam::new(level, Value::from(text));
            let _gone = context.peer.notify_logging_message(message).await;
        }
    }

    /// Tells the client that a resource has changed, if its session watches it.
    pub(crate) async fn touch(&self, uri: &str, context: &RequestContext<RoleServer>) {
        let is_watched = lock(&self.session.watched).contains(uri);
        if is_watched {
            let update = ResourceUpdatedNotificationParam::new(uri);
            let _gone = context.peer.notify_resource_updated(update).await;
        }
    }

    fn tools(&self) -> Vec<Tool> {
        tools::all(self.shared.has_more_tools.load(Ordering::Relaxed))
    }
}

impl Session {
    fn new() -> Self {
        Self {
            level: Mutex::new(LoggingLevel::Info),
            watched: Mutex::default(),
        }
    }
}

/// Whether the client speaks a revision before 2026-07-28.
fn is_legacy(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let name = Implementation::new("conformance-fixture", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(name)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, &context).await
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::all()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = vec![resources::template()];
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::read(&request.uri)?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Only what there is, so that the set stays small.
        resources::read(&request.uri)?;
        lock(&self.session.watched).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        lock(&self.session.watched).remove(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let has_more = self.shared.has_more_prompts.load(Ordering::Relaxed);
        Ok(ListPromptsResult::with_all_items(prompts::all(has_more)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::of(self, request, &context)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        prompts::complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !is_legacy(&context) {
            return Err(ErrorData::method_not_found::<
                rmcp::model::SetLevelRequestMethod,
            >());
        }
        *lock(&self.session.level) = request.level;
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        _requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let lists = SubscriptionFilter::builder().tools_list_changed();
        Some(lists.prompts_list_changed().build())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = subscription.cancelled() => return Ok(()),
            };
            let (sink, accepted) = (subscription.sink(), subscription.accepted());
            let sent = match change {
                Ok(Change::Tools) if accepted.tools_list_changed == Some(true) => {
                    sink.notify_tool_list_changed().await
                }
                Ok(Change::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    sink.notify_prompt_list_changed().await
                }
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
}
