// SPDX-License-Identifier: Apache-2.0
/// The Redis commands by which a gateway tells of a connection.
package enum Gateway {
    package static func lease(_ gateway: String, epoch: Int = 1) -> String { "SET gw:{\(gateway)} \(epoch) EX 3600" }

    package static func presence(
        _ uid: String, _ device: String, state: String = "fg", platform: String = "ios", gateway: String,
        activeConversation: String = "-", flags: String = "-", since: Int64? = nil
    ) -> String {
        let fields = [
            state, platform, gateway, "1", "1", String(nowMs), since.map { String($0) } ?? "-", activeConversation,
            flags,
        ]
        return "HSET p:{im:\(uid)} \(device) \(fields.joined(separator: ","))"
    }

    package static func off(_ uid: String, _ device: String) -> String { "HDEL p:{im:\(uid)} \(device)" }
}
