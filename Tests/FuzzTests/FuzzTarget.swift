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
    /// Texts that stand in Redis: tokens, presence, marks, badges, owners, traces.
    case stored
    /// Records of the two input topics.
    case records

    /// Runs one input to its end, on the loop.
    func run(_ bytes: UnsafeRawBufferPointer, on loop: Loop) -> [String] {
        switch self {
        case .answers: AnswerFuzz.run(bytes)
        case .session: SessionFuzz.run(bytes)
        case .client: ClientFuzz.run(bytes, on: loop)
        case .replies: ReplyFuzz.run(bytes)
        case .stored: StoredFuzz.run(bytes)
        case .records: RecordFuzz.run(bytes)
        }
    }
}
