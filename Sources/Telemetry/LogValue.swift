// SPDX-License-Identifier: Apache-2.0
/// A value of a log line. Never use a secret, a device token or a message's text.
public enum LogValue: Sendable {
    case string(String)
    /// Bytes from a peer. Invalid UTF-8 is repaired, and special characters are escaped.
    case bytes([UInt8])
    case int(Int)
    case double(Double)
    case bool(Bool)
}

extension LogValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int) { self = .int(value) }
    public init(floatLiteral value: Double) { self = .double(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}
