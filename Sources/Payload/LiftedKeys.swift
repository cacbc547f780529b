import PushCore

/// What profile `nim` takes from the custom keys as words of the push itself, where the push does not say them (NIM's
/// push payload: `sound`, `pushTitle`).
struct LiftedKeys {
    private static let soundKey = "sound"
    private static let titleKey = "pushTitle"
    /// As of `push.title`.
    private static let titleCharacters = 100

    /// `push.sound`, else the lifted one; nil: neither.
    let sound: String?
    /// `push.title`, else the lifted one; nil: neither.
    let title: String?

    init(_ message: borrowing Message, _ profile: PayloadProfile) {
        guard profile == .nim, let payload = message.push.payload else {
            sound = message.push.sound
            title = message.push.title
            return
        }
        sound = message.push.sound ?? payload[Self.soundKey]?.string
        title =
            message.push.title
            ?? payload[Self.titleKey]?.string.map { TextCut.characters($0, limit: Self.titleCharacters) }
    }

    /// Whether a custom key is none in this profile, since it is lifted out.
    static func isLifted(_ member: JSONValue.Member, _ profile: PayloadProfile) -> Bool {
        profile == .nim && (member.isNamed(soundKey) || member.isNamed(titleKey))
    }
}
