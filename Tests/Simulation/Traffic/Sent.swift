/// An event that the world sent, as the judge knows it.
struct Sent {
    enum Kind { case message, revoke, probe }

    var kind: Kind
    var app: String
    var eventID: String
    var messageID: String
    var conversation: String
    var isGroup = false
    var seq: Int64
    var recipients: [String]
    var atNanos: UInt64
    /// Of a revoke.
    var target: String?
    var partition: Int32 = -1
    var offset: Int64 = -1
}

/// A user-state record that the world sent.
struct StateSent {
    enum Kind {
        case bind(device: String, token: String)
        case unbind(device: String, token: String)
        case read(conversation: String, upTo: Int64)
        case mute(conversation: String)
        case other
    }

    var kind: Kind
    var app: String
    var eventID: String
    var uid: String
    var atNanos: UInt64
    var version: Int64 = 0
}

/// A user of the world.
struct Person {
    var app: String
    var uid: String
    var devices: [Device]
    /// `app` and `uid`, as Redis' hash tags have them.
    var tag: String { "\(app):\(uid)" }

    struct Device {
        var name: String
        /// Empty after an unbind.
        var token: String
        /// Answers deliveries with acks.
        var acks = true
    }
}
