// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// A reader of outside bytes, driven by fuzzed ones: from the fuzzer without end, from the kept files in every test run.
///
/// The first complaint is a broken promise; what traps needs no words.
enum FuzzTarget: String, CaseIterable, Sendable {
    /// Bodies of APNs' error answers, `Retry-After`, `Date`.
    case answers
    /// Bytes of a server to an HTTP/2 session.
    case session
    /// Bytes of a server to a whole APNs client, with its clock and its connections' ends.
    case client
    /// Redis' replies.
    case replies
    /// Records of the two input topics, and those of deferred work.
    case records
    /// What stands in Redis: users, presence, owners, marks, traces.
    case state
    /// A record, its decision and its payload, for a receiver of hostile language, key and id.
    case decisions
    /// The configuration's text and the environment that is laid over it.
    case configuration
    /// Requests to the operator's HTTP server, cut in pieces, judged by name and token.
    case requests
    /// The simulator's scenario files.
    case scenarios
    /// Time zones: TZif files and the names that lead to them.
    case zones
    /// Kafka records' headers, and those of a dead letter.
    case headers
    /// Lines of what `record` writes and `replay` reads.
    case recordings

    /// Runs one input to its end, on the loop.
    func run(_ bytes: UnsafeRawBufferPointer, on loop: Loop) -> [String] {
        switch self {
        case .answers: AnswerFuzz.run(bytes)
        case .session: SessionFuzz.run(bytes)
        case .client: ClientFuzz.run(bytes, on: loop)
        case .replies: ReplyFuzz.run(bytes)
        case .records: RecordFuzz.run(bytes)
        case .state: StateFuzz.run(bytes)
        case .decisions: DecisionFuzz.run(bytes)
        case .configuration: ConfigurationFuzz.run(bytes)
        case .requests: RequestFuzz.run(bytes)
        case .scenarios: ScenarioFuzz.run(bytes)
        case .zones: ZoneFuzz.run(bytes)
        case .headers: HeaderFuzz.run(bytes)
        case .recordings: RecordingFuzz.run(bytes)
        }
    }
}
