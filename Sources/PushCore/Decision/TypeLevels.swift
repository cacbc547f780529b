// SPDX-License-Identifier: Apache-2.0
/// A mute level per conversation type: the app's `default_levels`, and a user's `settings.levels`.
///
/// Works like a dictionary, but without hashing per message. Three bits for each type, because each recipient in progress
/// has a user's levels.
public struct TypeLevels: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    private var bits: UInt16 = 0

    public init() {}

    public init(dictionaryLiteral elements: (Conversation.Kind, MuteLevel)...) {
        for (type, level) in elements { self[type] = level }
    }

    public var isEmpty: Bool { bits == 0 }

    public subscript(type: Conversation.Kind) -> MuteLevel? {
        get {
            let code = Int(bits >> Self.place(type) & 7)
            return code == 0 ? nil : MuteLevel(rawValue: code - 2)
        }
        set {
            let code = newValue.map { UInt16(truncatingIfNeeded: $0.rawValue + 2) } ?? 0
            bits = bits & ~(7 << Self.place(type)) | code << Self.place(type)
        }
    }

    private static func place(_ type: Conversation.Kind) -> UInt16 {
        switch type {
        case .p2p: 0
        case .group: 3
        case .ultra: 6
        case .system: 9
        case .custom: 12
        }
    }
}
