/// A value beside a log message. Never put a secret, a device token or a message's text into one.
public enum LogValue: Sendable {
    case string(String)
    /// Bytes of a remote side: broken UTF-8 is repaired, everything is escaped.
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
