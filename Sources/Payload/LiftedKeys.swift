// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The words of the push itself that profile `nim` takes out of the custom keys, where the push does not say them: `sound`,
/// `pushTitle`, `apsField` (contract section 2, note 7).
struct LiftedKeys {
    private static let soundKey = "sound"
    private static let titleKey = "pushTitle"
    private static let apsKey = "apsField"
    /// The limit of `push.title`.
    private static let titleCharacters = 100

    /// `push.sound`, else the key of the payload; nil for neither.
    let sound: String?
    /// `push.title`, else the key of the payload; nil for neither.
    let title: String?
    /// `push.aps`, else the lifted one; nil: neither. A `sound` that is an object (a critical alert) is in it.
    let aps: JSONValue?

    init(_ message: borrowing Message, _ profile: PayloadProfile) {
        guard profile == .nim, let members = message.push.payload?.members(in: profile) else {
            sound = message.push.sound
            title = message.push.title
            aps = message.push.aps
            return
        }
        let lifted = message.push.sound == nil ? members.value(of: Self.soundKey) : nil
        sound = message.push.sound ?? lifted?.string
        title =
            message.push.title
            ?? members.value(of: Self.titleKey)?.string.map { TextCut.characters($0, limit: Self.titleCharacters) }
        aps = Self.with(lifted, in: message.push.aps ?? members.value(of: Self.apsKey))
    }

    /// `aps` with a sound of the payload that is an object; `aps` itself if it names a sound.
    private static func with(_ sound: JSONValue?, in aps: JSONValue?) -> JSONValue? {
        guard case .object(let parts)? = sound, !parts.isEmpty else { return aps }
        var members: [JSONValue.Member] = []
        if case .object(let given)? = aps { members = given.filter { !$0.isNamed(soundKey) || !$0.value.isNull } }
        if members.value(of: soundKey) != nil { return aps }
        return .object(members + [.init(soundKey, .object(parts))])
    }

    /// Whether the profile takes this member out of the custom keys.
    static func isLifted(_ member: JSONValue.Member, _ profile: PayloadProfile) -> Bool {
        profile == .nim && (member.isNamed(soundKey) || member.isNamed(titleKey) || member.isNamed(apsKey))
    }
}
