// SPDX-License-Identifier: Apache-2.0
/// Waits for the first of several reasons to end.
public final class Ending: Sendable {
    private let stream: AsyncStream<ExitCode>
    private let continuation: AsyncStream<ExitCode>.Continuation

    public init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    }

    public func resolve(_ code: ExitCode) { continuation.yield(code) }

    public func value() async -> ExitCode {
        for await code in stream { return code }
        return .done
    }
}
