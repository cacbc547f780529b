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
    /// `push.aps`, else the lifted one; nil: neither.
    let aps: JSONValue?

    init(_ message: borrowing Message, _ profile: PayloadProfile) {
        guard profile == .nim, let members = message.push.payload?.members(in: profile) else {
            sound = message.push.sound
            title = message.push.title
            aps = message.push.aps
            return
        }
        sound = message.push.sound ?? members.value(of: Self.soundKey)?.string
        title =
            message.push.title
            ?? members.value(of: Self.titleKey)?.string.map { TextCut.characters($0, limit: Self.titleCharacters) }
        aps = message.push.aps ?? members.value(of: Self.apsKey)
    }

    /// Whether the profile takes this member out of the custom keys.
    static func isLifted(_ member: JSONValue.Member, _ profile: PayloadProfile) -> Bool {
        profile == .nim && (member.isNamed(soundKey) || member.isNamed(titleKey) || member.isNamed(apsKey))
    }
}
