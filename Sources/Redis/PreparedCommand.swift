// SPDX-License-Identifier: Apache-2.0
/// A command built in advance: its inputs may be released, and sending it is one copy of bytes.
public struct PreparedCommand: Sendable {
    private let encoded: [UInt8]
    private let count: Int

    /// Takes the builder's content.
    init(_ command: inout RedisCommand) {
        count = command.finish()
        encoded = command.withArguments(from: 0) { [UInt8]($0) }
    }

    /// Adds its arguments to another command.
    public func append(to command: inout RedisCommand) {
        encoded.withUnsafeBytes { command.append(encoded: $0, arguments: count) }
    }
}

extension RedisClient {
    /// Sends a prepared command. Throws like the other `command`.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ prepared: PreparedCommand
    ) throws(RedisFault) {
        try command(tag, operation) { prepared.append(to: &$0) }
    }
}
