// SPDX-License-Identifier: Apache-2.0
/// A push of Carillon as an app or its service extension gets it. Needs no Apple framework.
///
/// It reads the payload of every profile (docs/contract/payloads.md).
public struct CarillonPush: Sendable, Equatable {
    /// `pid`: the same for every attempt, and APNs' `apns_id`.
    public let id: String
    public let messageID: String?
    public let conversation: Conversation?
    /// The message that this push takes back: remove its notification.
    public let revokedMessageID: String?
    /// The number in `aps.badge`.
    public let badge: Int?
    /// It lowered the user's number: `corner_mark_decrease` in profile `wps`, in the others every revoke without
    /// `revoke_counts`.
    public let lowersBadge: Bool
    /// It shows something.
    public let hasAlert: Bool
    /// It goes through the service extension (`mutable-content`).
    public let isMutable: Bool
    /// The address of the picture to attach.
    public let image: String?
    public let communication: Communication?

    public struct Conversation: Sendable, Equatable {
        public let id: String
        /// `p2p`, `group` and so on; in profile `rc` its own words, such as `PR`.
        public let type: String
    }

    /// For a communication notification.
    public struct Communication: Sendable, Equatable {
        public let senderID: String
        public let senderName: String?
        public let avatar: String?
        public let conversationID: String
        public let conversationName: String?
        public let isGroup: Bool
    }

    /// - Parameter userInfo: `request.content.userInfo` of the notification.
    /// - Returns: nil if the push is not from Carillon.
    public init?(_ userInfo: [AnyHashable: Any]) {
        guard let id = userInfo["pid"] as? String else { return nil }
        let aps = userInfo["aps"] as? [AnyHashable: Any] ?? [:]
        let rc = userInfo["rc"] as? [AnyHashable: Any]
        let params = (userInfo["message"] as? [AnyHashable: Any])?["params"] as? [AnyHashable: Any]
        let keys = params ?? userInfo
        self.id = id
        messageID = (rc?["id"] ?? params?["msg_id"] ?? userInfo["mid"]) as? String
        revokedMessageID = keys["revoke_msg_id"] as? String
        badge = aps["badge"] as? Int
        let takesOff = revokedMessageID != nil && keys["revoke_counts"] as? Bool != true
        lowersBadge = params.map { $0["corner_mark_decrease"] as? Bool ?? false } ?? takesOff
        hasAlert = aps["alert"] != nil
        isMutable = aps["mutable-content"] as? Int == 1
        image = userInfo["image"] as? String
        conversation = Self.conversation(rc, params, userInfo)
        communication = Self.communication(userInfo["im"] as? [AnyHashable: Any])
    }

    private static func conversation(
        _ rc: [AnyHashable: Any]?, _ params: [AnyHashable: Any]?, _ userInfo: [AnyHashable: Any]
    ) -> Conversation? {
        let (id, type) =
            if let rc {
                (rc["tId"], rc["cType"])
            } else if let params {
                (params["conv_id"], params["conv_type"])
            } else {
                (userInfo["sessionid"], userInfo["sessiontype"])
            }
        guard let id = id as? String, let type = type as? String else { return nil }
        return Conversation(id: id, type: type)
    }

    private static func communication(_ keys: [AnyHashable: Any]?) -> Communication? {
        let sender = keys?["sender"] as? [AnyHashable: Any]
        let conversation = keys?["conv"] as? [AnyHashable: Any]
        guard let senderID = sender?["id"] as? String, let conversationID = conversation?["id"] as? String else {
            return nil
        }
        return Communication(
            senderID: senderID, senderName: sender?["name"] as? String, avatar: sender?["avatar"] as? String,
            conversationID: conversationID, conversationName: conversation?["name"] as? String,
            isGroup: conversation?["group"] as? Bool ?? false)
    }
}
