// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The users and messages of a bench. Every user has one iPhone and is offline. Messages are 1:1 and about 400 bytes
/// long.
///
/// The same number always gives the same user, token and text.
package struct BenchTraffic: Sendable {
    let users: Int
    let app: String
    let topic: String

    private static let texts = [
        "明天早上九点在老地方见,记得带上合同和样品,别迟到哦 🙂", "Are we still meeting at seven? I booked the table by the window.",
        "刚刚把设计稿发到群里了,请大家抽空看一下,有意见直接在文档里评论。", "👍👍 太好了!", "Ich bin in zehn Minuten da, fang ruhig schon an.",
        "今天的日报我已经整理完毕,请查收附件。谢谢!", "ok", "週末要不要一起去爬山?天氣預報說是晴天,我可以開車去接你 ⛰️",
    ]
    private static let nicks = ["小明", "Alice", "李雷", "Björn", "韩梅梅", "😀 Bob", "김철수"]

    /// - Parameter users: at least 2.
    package init(users: Int, app: String, topic: String) {
        self.users = max(2, users)
        self.app = app
        self.topic = topic
    }

    func uid(_ user: Int) -> String { "u\(user % users)" }

    /// The token of a user's device: 64 evenly distributed hex digits.
    package func token(_ user: Int) -> String {
        var random = SmallRandom(seed: UInt64(user % users) &+ 0x5EED)
        var text: [UInt8] = []
        let digits = Array("0123456789abcdef".utf8)
        for _ in 0..<4 {
            var word = random.next()
            for _ in 0..<16 {
                text.append(digits[Int(word & 15)])
                word >>= 4
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// A `bind` of a user's device.
    package func bind(_ user: Int, atMs: Int64) -> (key: String, value: String) {
        let uid = uid(user)
        let lang = ["zh-Hans", "en", "zh-Hant", "de"][user % 4]
        let value = """
            {"v":1,"kind":"bind","app":"\(app)","event_id":"b-\(uid)-\(atMs)","sent_ms":\(atMs),"uid":"\(uid)",\
            "token":{"device":"\(uid)-phone","token":"\(token(user))","env":"production","topic":"\(topic)",\
            "type":"alert","bind_ver":1,"lang":"\(lang)","tz":"Asia/Shanghai"}}
            """
        return (uid, value)
    }

    /// Message `number` of a series. Every series has its own ids.
    ///
    /// - Parameter receivers: the users who receive messages in turn; nil for all.
    package func message(
        _ number: Int, series: String, atMs: Int64, receivers: Range<Int>? = nil
    ) -> (key: String, value: String) {
        let to = receivers.map { $0.lowerBound + number % max(1, $0.count) } ?? (number % users)
        let from = (to + 1 + number % (users - 1)) % users
        let conversation = "p2p-\(uid(from))-\(uid(to))"
        let value = """
            {"v":1,"kind":"message","app":"\(app)","event_id":"e-\(series)-\(number)","sent_ms":\(atMs),\
            "msg_id":"m-\(series)-\(number)","server_seq":\(number + 1),"conv":{"id":"\(conversation)","type":"p2p"},\
            "from":{"uid":"\(uid(from))","nick":"\(Self.nicks[number % Self.nicks.count])"},"to":{"uids":["\(uid(to))"]},\
            "type_name":"RC:TxtMsg","push":{"content":"\(Self.texts[number % Self.texts.count])",\
            "payload":{"jump":"chat","room":\(number % 1000)}}}
            """
        return (conversation, value)
    }

    /// Message `number` of a series to a group of `group` members. The worker reads the members from Redis; the sender
    /// is not a member.
    ///
    /// - Parameter expireAtMs: nil for a day later, which is the worker's default.
    package func groupMessage(
        _ number: Int, group: Int, series: String, atMs: Int64, expireAtMs: Int64? = nil
    ) -> (key: String, value: String) {
        let conversation = "g-\(number % groups(of: group))"
        let expiry = expireAtMs.map { "\"expire_at_ms\":\($0)," } ?? ""
        let value = """
            {"v":1,"kind":"message","app":"\(app)","event_id":"e-\(series)-\(number)","sent_ms":\(atMs),\
            "msg_id":"m-\(series)-\(number)","server_seq":\(number + 1),"conv":{"id":"\(conversation)","type":"group"},\
            "from":{"uid":"speaker","nick":"\(Self.nicks[number % Self.nicks.count])"},\(expiry)\
            "type_name":"RC:TxtMsg","push":{"content":"\(Self.texts[number % Self.texts.count])",\
            "payload":{"jump":"chat","room":\(number % 1000)}}}
            """
        return (conversation, value)
    }

    /// The number of groups that the users fill; each user is in one.
    package func groups(of size: Int) -> Int { max(1, users / size) }

    /// The Redis commands that create the groups, a few hundred members each, all with one mute level.
    ///
    /// - Parameter count: nil for all groups.
    package func groupCommands(size: Int, level: Int, count: Int? = nil) -> [String] {
        (0..<(count ?? groups(of: size))).flatMap { group in
            stride(from: 0, to: size, by: 200).map { first in
                let members = (first..<min(size, first + 200)).map { "\(uid(group * size + $0)) \(level)" }
                return "HSET g:{\(app):g-\(group)} " + members.joined(separator: " ")
            }
        }
    }

    /// A payload as the worker renders it, for comparison clients.
    package static let samplePayload = """
        {"aps":{"alert":{"body":"Alice: \(texts[1])"},"badge":3,"mutable-content":1,"sound":"default",\
        "thread-id":"p2p-u10001-u20002"},"jump":"chat","room":17,"sessionid":"u10001","sessiontype":"p2p",\
        "pid":"5f0c1e9a-8f65-4c3e-9d3e-2f8a6b1c7d10"}
        """
}
