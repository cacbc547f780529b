/// A command put together before its time: what it is made of may go, and sending it is one copy of bytes.
public struct PreparedCommand: Sendable {
    let encoded: [UInt8]
    let count: Int
}

extension RedisClient {
    /// Sends a prepared command; throws as the other `command` does.
    public func command(
        _ tag: UInt64, _ operation: RedisOperation = .other, _ prepared: PreparedCommand
    ) throws(RedisFault) {
        try command(tag, operation) { command in
            prepared.encoded.withUnsafeBytes { command.append(encoded: $0, arguments: prepared.count) }
        }
    }
}
