//! Calls that stop for a question: what an upstream asks, and a call that waits within itself.
//!
//! In the modern era an upstream answers with its questions and forgets the call. In the legacy era
//! it asks within the call, which stays open at the upstream while the caller is asked.

use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::call::input::{Askable, check_question};
use crate::call::upstream::UpstreamError;
use crate::call::upstream::lease::Lease;
use crate::call::upstream::waiting::Waiting;
use crate::call::{CallerSide, InputAnswer};
use crate::lifecycle::Lifecycle;

/// The name of a question that an upstream asked within its call.
const QUESTION: &str = "question";

/// How a call came back.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With its result.
    Result(Map<String, Value>),
    /// With a question for the caller.
    Asks(Box<Asks>),
}

/// A request for input.
#[derive(Debug)]
pub(crate) struct Asks {
    /// `input_required` as JSON, without a state.
    pub(crate) round: Map<String, Value>,
    /// The session that asks.
    pub(crate) session: u64,
    /// The upstream's own state.
    pub(crate) state: Option<String>,
    /// The call, where the upstream waits within it.
    pub(crate) parked: Option<Parked>,
}

impl Asks {
    /// By a question that stopped a call.
    pub(super) fn within(lease: Lease, waiting: Waiting, question: Question) -> Self {
        Self {
            round: question.round(),
            session: lease.session_number(),
            state: None,
            parked: Some(Parked {
                question,
                waiting,
                lease,
            }),
        }
    }
}

/// An upstream's `elicitation/create`, and where the answer goes.
#[derive(Debug)]
pub(super) struct Question {
    request: Value,
    reply: oneshot::Sender<ElicitResult>,
}

impl Question {
    /// A question that may be passed on, and where its answer arrives; `None` for a kind that the
    /// caller has not declared.
    pub(super) fn new(
        params: ElicitRequestParams,
        askable: Askable,
    ) -> Option<(Self, oneshot::Receiver<ElicitResult>)> {
        let request = serde_json::to_value(ElicitRequest::new(params)).ok()?;
        check_question(&request, askable).ok()?;
        let (reply, answer) = oneshot::channel();
        Some((Self { request, reply }, answer))
    }

    /// As a round of the modern era.
    fn round(&self) -> Map<String, Value> {
        let mut round = Map::new();
        round.insert("resultType".to_owned(), "input_required".into());
        round.insert(
            "inputRequests".to_owned(),
            json!({ QUESTION: self.request }),
        );
        round
    }
}

/// A call whose upstream waits for an answer. Dropped, the answer is that nobody gave one, and the
/// call is cancelled.
#[derive(Debug)]
pub(crate) struct Parked {
    // Let go of in this order.
    question: Question,
    waiting: Waiting,
    lease: Lease,
}

impl Parked {
    /// The program's tasks.
    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        self.lease.lifecycle()
    }

    /// Whether an answer can be handed on to the upstream.
    pub(crate) fn reads(answer: &InputAnswer) -> bool {
        read(answer).is_some()
    }

    /// Hands the caller's answer to the upstream, and waits on.
    pub(crate) async fn resume(
        self,
        answer: &InputAnswer,
        side: &CallerSide,
    ) -> Result<Answer, UpstreamError> {
        let answer = read(answer).unwrap_or_else(|| ElicitResult::new(ElicitationAction::Cancel));
        self.go_on(answer, side).await
    }

    /// Tells the upstream that the caller will not answer, and waits on.
    pub(crate) async fn decline(self, side: &CallerSide) -> Result<Answer, UpstreamError> {
        let answer = ElicitResult::new(ElicitationAction::Decline);
        self.go_on(answer, side).await
    }

    async fn go_on(self, answer: ElicitResult, side: &CallerSide) -> Result<Answer, UpstreamError> {
        // An upstream that no longer waits goes on without it.
        let _gone = self.question.reply.send(answer);
        self.lease.renewed().wait(self.waiting, side).await
    }
}

fn read(answer: &InputAnswer) -> Option<ElicitResult> {
    serde_json::from_value(answer.responses.get(QUESTION)?.clone()).ok()
}
