// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// A device that APNs wants left alone (429 without Retry-After).
struct HeldDeviceTests {
    /// The pushes of one user, each in a conversation of its own or all in one.
    private static func messages(_ uid: String, _ count: Int, oneConversation: Bool) -> [Line] {
        (0..<count).map { number in
            let push = #""content":"hello","collapse_id":"\#(uid)-\#(number)""#
            return .message(
                "\(uid)-\(number)", to: [uid], conv: oneConversation ? "c-\(uid)" : "c-\(uid)-\(number)", push: push)
        }
    }

    @Test(arguments: [true, false])
    func `a held device gets one try at a time, later all its pushes, and in order those of a conversation`(
        oneConversation: Bool
    ) throws {
        try Stage.with(.oneShard) { stage in
            let (uid, count) = ("held", 30)
            let phone = token(uid, "phone")
            try stage.play(state: [.bind(uid)])
            stage.answerPushes(.tooMany)
            try stage.writeEvents(Self.messages(uid, count, oneConversation: oneConversation))
            // Until the pauses are longer than pushes wait in memory.
            let held = try stage.look(until: "its pushes are parked", within: .seconds(300)) { seen in
                Set(seen.parked.compactMap { $0["msg_id"]?.string }).count == count
            }
            let refusals = held.pushes(to: phone).map(\.atMs)
            for (one, next) in zip(refusals, refusals.dropFirst()) {
                #expect(next - one >= 200, "refused at \(one - refusals[0]) ms and \(next - refusals[0]) ms")
            }
            #expect(refusals.count <= 9, "\(refusals.map { $0 - refusals[0] })")
            try until("the status says what waits", within: .seconds(5)) {
                let status = try stage.page("/statusz", of: try stage.worker).text
                let waiting = try JSONTree(parsing: Array(status.utf8))["waiting"]
                let page = try stage.page("/", of: try stage.worker).text
                return status.contains(#""held_devices_429":1"#) && status.contains(#""parked_records":\#(count)"#)
                    && waiting?["pushes"]?.int == Int64(count) && waiting?["oldest_ms"]?.int != nil
                    && page.contains("<b>\(count)</b> pushes wait: ")
            }
            let answeredMs = nowMs
            stage.answerPushes(nil)
            let seen = try stage.look(until: "all are pushed", within: .seconds(320)) {
                $0.accepted(phone).count == count
            }
            #expect(nowMs - answeredMs <= 302_000, "the longest wait is five minutes")
            let accepted = seen.accepted(phone)
            if oneConversation {
                #expect(accepted.map { $0.headers["apns-collapse-id"] } == (0..<count).map { "\(uid)-\($0)" })
            }
            let first = try #require(accepted.first?.atMs)
            let last = try #require(accepted.last?.atMs)
            #expect(last - first < 5000, "the first acceptance releases the others: \(last - first) ms")
        }
    }

    /// Parked for a long time behind a pause that another push of the device ends.
    @Test func `an accepted push releases what is parked for its device`() throws {
        try Stage.with(.oneShard) { stage in
            let (uid, phone) = ("free", token("free", "phone"))
            try stage.play(state: [.bind(uid)])
            stage.answerPushes(.putOff(seconds: 200))
            try stage.writeEvents([.message("free-1", to: [uid], conv: "c-1")])
            _ = try stage.look(until: "it is parked") { !$0.parked.isEmpty }
            stage.answerPushes(.putOff(seconds: 11))
            try stage.writeEvents([.message("free-2", to: [uid], conv: "c-2")])
            _ = try stage.look(until: "the other is parked behind it") { $0.parked.count == 2 }
            stage.answerPushes(nil)
            let seen = try stage.look(until: "both are pushed", within: .seconds(260)) { $0.accepted(phone).count == 2 }
            let times = seen.accepted(phone).map(\.atMs)
            #expect(abs(times[1] - times[0]) < 3000)
        }
    }

    /// One record has both devices and is due with the first. Its reader has not seen the 429.
    @Test
    func `a device of a parked recipient waits for its own Retry-After, also where another worker reads the record`()
        throws
    {
        var settings = LocalCluster.Settings.oneShard
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        try Stage.with(settings) { stage in
            let (uid, phone, pad) = ("two", token("two", "phone"), token("two", "pad"))
            try stage.play(state: [.bind(uid), .bind(uid, "pad")])
            let rules = [(phone, 60), (pad, 15)].map { hex, seconds in
                var match = ScenarioRule.Match()
                match.tokenPrefix = Array(hex.utf8)
                return ScenarioRule(match, .answer(.putOff(seconds: seconds)))
            }
            stage.apns.set(Scenario(rules: rules))
            try stage.writeEvents([.message("two-1", to: [uid])])
            let held = try stage.look(until: "both devices are parked") { $0.parked.count == 2 }
            let refusedMs = try #require(held.pushes(to: phone).first?.atMs)
            #expect(try stage.stop(try stage.worker))
            try stage.startWorker(waits: false)
            stage.apns.set(Scenario(rules: []))
            let seen = try stage.look(until: "both are pushed", within: .seconds(120)) {
                !$0.accepted(phone).isEmpty && !$0.accepted(pad).isEmpty
            }
            let (phoneMs, padMs) = (
                try #require(seen.accepted(phone).first?.atMs), try #require(seen.accepted(pad).first?.atMs)
            )
            #expect(phoneMs - refusedMs >= 60_000, "the phone was pushed after \(phoneMs - refusedMs) ms")
            #expect(padMs - refusedMs < 40_000, "the pad was pushed after \(padMs - refusedMs) ms")
        }
    }

    /// The phone waits to be parked, and the pad is with APNs. The user reads the message, and the connection does not acknowledge.
    @Test func `each device has its record where the message is read before the last of them is parked`() throws {
        try Stage.with(.oneShard) { stage in
            let (phone, pad) = (token("left", "phone"), token("left", "pad"))
            try stage.play(state: ["phone", "pad", "web"].map { .bind("left", $0) })
            try stage.redis([
                Gateway.lease("gw"),
                Gateway.presence("left", "web", state: "bg", gateway: "gw", flags: "l", since: nowMs),
            ])
            let rules = [(phone, Int64(0)), (pad, 4_950)].map { hex, delayMs in
                var match = ScenarioRule.Match()
                match.tokenPrefix = Array(hex.utf8)
                return ScenarioRule(match, .answer(.putOff(seconds: 20, afterMs: delayMs)))
            }
            stage.apns.set(Scenario(rules: rules))
            try stage.writeEvents([.message("left-1", to: ["left"], conv: "c", seq: 1)])
            _ = try stage.look(until: "the phone is put off") { !$0.pushes(to: phone).isEmpty }
            try stage.writeState([.read("left", #""conv_id":"c","up_to_seq":1"#)])
            let seen = try stage.look(until: "the pad is done", within: .seconds(120)) {
                $0.outcomes(of: "left-1").contains { $0.hasPrefix("left/pad") }
            }
            #expect(
                seen.outcomes(of: "left-1").sorted()
                    == ["pad", "phone", "web"].map { "left/\($0) suppressed already_read" })
        }
    }

    /// The first event waits for an ack of another recipient. A reader in another process cannot know of it.
    @Test func `the record of an event's parked recipient comes after those of earlier events of its device`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("behind")])
            try stage.redis([Gateway.lease("gw-b"), Gateway.presence("online", "phone", gateway: "gw-b")])
            stage.answerPushes(.putOff(seconds: 60))
            try stage.writeEvents([.message("behind-1", to: ["behind", "online"], conv: "c-behind")])
            _ = try stage.look(until: "its device is parked") { $0.pushes(to: token("behind", "phone")).count == 1 }
            try stage.writeEvents([.message("behind-2", to: ["behind"], conv: "c-behind")])
            try until("both are in the topic", within: .seconds(30)) {
                stage.records(of: Configuration.Topics().parked).count == 2
            }
            let values = stage.records(of: Configuration.Topics().parked).map {
                String(decoding: $0.value ?? [], as: UTF8.self)
            }
            #expect(values.map { $0.contains("behind-1") } == [true, false])
        }
    }
}
