// SPDX-License-Identifier: Apache-2.0
/// `push.payload`: the keys next to `aps` (contract section 2, note 7).
public enum CustomPayload: Sendable, Equatable {
    case object([JSONValue.Member])
    /// `members` are the members of this JSON text if it is an object; nil for every other text.
    case text(String, members: [JSONValue.Member]?)

    /// The custom keys; nil where the profile takes the payload as a text. Only `nim` reads a text as the object that it spells.
    public func members(in profile: PayloadProfile) -> [JSONValue.Member]? {
        switch self {
        case .object(let members): members
        case .text(_, let members): profile == .nim ? members : nil
        }
    }

    /// The text, where the profile takes the payload as one.
    public func text(in profile: PayloadProfile) -> String? {
        if case .text(let text, _) = self, members(in: profile) == nil { return text }
        return nil
    }
}

extension [JSONValue.Member] {
    /// The value of the key; nil where it is absent.
    public func value(of key: String) -> JSONValue? {
        for index in indices where self[index].isNamed(key) { return self[index].value }
        return nil
    }
}
