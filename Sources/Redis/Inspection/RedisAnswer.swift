// SPDX-License-Identifier: Apache-2.0
/// A reply that outlives its call; control plane only.
public enum RedisAnswer: Sendable, Equatable {
    /// A string or a status, with invalid UTF-8 repaired.
    case text(String)
    case number(Int64)
    case list([RedisAnswer])
    case null

    init(_ reply: borrowing RedisReply) {
        switch reply.kind {
        case .string, .status: self = .text(reply.string ?? "")
        case .integer: self = .number(reply.int64 ?? 0)
        case .array:
            var elements: [RedisAnswer] = []
            reply.forEach { elements.append(RedisAnswer($0)) }
            self = .list(elements)
        case .null, .error: self = .null
        }
    }

    public var text: String? { if case .text(let text) = self { text } else { nil } }
    public var list: [RedisAnswer]? { if case .list(let elements) = self { elements } else { nil } }

    /// A number, also in text form.
    public var number: Int64? {
        switch self {
        case .number(let number): number
        case .text(let text): Int64(text)
        case .list, .null: nil
        }
    }
}
