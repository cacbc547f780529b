// SPDX-License-Identifier: Apache-2.0
internal import Digits

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

    /// The bytes of an argument; nil if there are not so many.
    public func argument(_ place: Int) -> [UInt8]? {
        encoded.withUnsafeBytes { bytes in
            var rest = bytes[...]
            var left = place
            // Each is `$`, its length, a line end, its bytes, a line end.
            while let end = rest.firstIndex(of: UInt8(ascii: "\r")),
                let length = Decimal.unsigned(UnsafeRawBufferPointer(rebasing: rest[..<end].dropFirst())),
                let count = Int(exactly: length)
            {
                rest = rest[end...].dropFirst(2)
                if left == 0 { return Array(rest.prefix(count)) }
                left -= 1
                rest = rest.dropFirst(count).dropFirst(2)
            }
            return nil
        }
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
