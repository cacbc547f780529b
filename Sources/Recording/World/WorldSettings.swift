// SPDX-License-Identifier: Apache-2.0
/// The settings of a generated world. Equal settings give equal bytes.
public struct WorldSettings: Sendable, Equatable {
    public var seed: UInt64 = 1
    public var app = "im"
    /// Bundle id for the tokens.
    public var bundle = "com.example.im"
    /// Environment of the tokens: `production` or `sandbox`.
    public var environment = "production"
    public var users = 10_000
    public var groups = 200
    /// Members of the largest group. The other groups get smaller by a power law, down to about five.
    public var largest = 2_000
    /// Records of `im.events`: messages and revokes.
    public var messages = 100_000
    /// Messages to the largest group. It gets no others.
    public var announcements = 1
    /// Unix ms.
    public var startMs: Int64 = 1_767_600_000_000
    public var durationMs: Int64 = 3_600_000
    /// More messages by day than by night; otherwise an even rate.
    public var hasDayCurve = false
    /// Exponent of Zipf's law for the receivers; 0 makes all users equal.
    public var exponent = 1.0
    public var readStorms = 0
    public var bindStorms = 0
    /// Fraction of the users with a phone that connects and disconnects.
    public var flapping = 0.0

    public static let usersMax = 10_000_000
    public static let groupsMax = 1_000_000
    public static let messagesMax = 1_000_000_000
    public static let durationMaxMs: Int64 = 31 * 86_400_000
    public static let stormsMax = 10_000

    public init() {}

    /// The reason why the settings are invalid; nil if they are valid.
    public var fault: String? {
        if !(2...Self.usersMax).contains(users) { return "2 to \(Self.usersMax) users" }
        if !(0...Self.groupsMax).contains(groups) { return "at most \(Self.groupsMax) groups" }
        if groups > 0, !(3...users).contains(largest) {
            return "a largest group of at least 3 members, and of no more than there are users"
        }
        if !(0...Self.messagesMax).contains(messages) { return "at most \(Self.messagesMax) messages" }
        if !(0...messages).contains(announcements) { return "no more announcements than messages" }
        if !(1000...Self.durationMaxMs).contains(durationMs) { return "a duration from 1 s to 31 days" }
        // The dates that the worker accepts, with room before and after for a world.
        if !(Self.durationMaxMs...253_000_000_000_000).contains(startMs) { return "a start from 1970-02 on" }
        if !(0...3).contains(exponent) { return "an exponent of Zipf's law from 0 to 3" }
        if !(0...1).contains(flapping) { return "a share of flapping users from 0 to 1" }
        if !(0...Self.stormsMax).contains(readStorms) || !(0...Self.stormsMax).contains(bindStorms) {
            return "at most \(Self.stormsMax) storms of each kind"
        }
        return nil
    }

    var endMs: Int64 { startMs + durationMs }

    /// Distinguishes this world's messages and groups from those of another world.
    var tag: String {
        let shape: [UInt64] = [
            UInt64(users), UInt64(groups), UInt64(largest), UInt64(messages), UInt64(announcements),
            UInt64(bitPattern: startMs), UInt64(durationMs), hasDayCurve ? 1 : 0, exponent.bitPattern,
            UInt64(readStorms), UInt64(bindStorms), flapping.bitPattern,
        ]
        let hash = shape.reduce(seed) { WorldRandom.mix($0, $1) }
        return String(hash % 2_176_782_336, radix: 36)
    }
}
