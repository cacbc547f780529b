/// A command put together before its time: what it is made of may go, and sending it is one copy of bytes.
public struct PreparedCommand: Sendable {
    private let encoded: [UInt8]
    private let count: Int

    /// What a builder has put together so far.
    init(_ command: inout RedisCommand) {
        count = command.finish()
        encoded = command.withArguments(from: 0) { [UInt8]($0) }
    }

    /// Adds its arguments to another command's.
    public func append(to command: inout RedisCommand) {
        encoded.withUnsafeBytes { command.append(encoded: $0, arguments: count) }
    }
}

extension RedisClient {
    /// Sends a prepared command; throws as the other `command` does.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ prepared: PreparedCommand
    ) throws(RedisFault) {
        try command(tag, operation) { prepared.append(to: &$0) }
    }
}
