// SPDX-License-Identifier: Apache-2.0
/// Whether a message mentions this recipient, all members, or both (contract section 2, `mention`).
public struct MentionClass: Sendable, Equatable {
    public var me: Bool
    public var all: Bool

    public var isMention: Bool { me || all }

    public init(me: Bool, all: Bool) {
        self.me = me
        self.all = all
    }

    public init(_ mention: Message.Mention?, of uid: String) {
        guard let mention else {
            self.init(me: false, all: false)
            return
        }
        self.init(me: mention.names(uid), all: mention.all)
    }

    var text: String {
        switch (me, all) {
        case (true, true): "mentions the user and all"
        case (true, false): "mentions the user"
        case (false, true): "mentions all"
        case (false, false): "no mention"
        }
    }
}
