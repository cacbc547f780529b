// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import APNs

@Suite struct PushTests {
    @Test func deviceTokenIsLowerCaseHexOnly() throws {
        #expect(DeviceToken("ABCD12")?.hex == "abcd12")
        #expect(DeviceToken(bytes: [0xAB, 0x01])?.hex == "ab01")
        for bad in ["", "abc", "ab/../cd0", "zz", "ab cd ", String(repeating: "a", count: 514)] {
            #expect(DeviceToken(bad) == nil, "\(bad)")
        }
    }

    @Test func eachCharacterOfADeviceTokenIsJudgedOnItsOwn() {
        // Eight are looked at together: none may hide or spoil its neighbours.
        for place in 0..<18 {
            for scalar in (UInt32(1)...0x100).compactMap(Unicode.Scalar.init) {
                var characters = [Character](repeating: "0", count: 18)
                characters[place] = Character(scalar)
                let text = String(characters)
                let isHex = scalar.isASCII && Character(scalar).isHexDigit
                let made = DeviceToken(text)
                #expect(made?.hex == (isHex ? text.lowercased() : nil), "\(scalar.value) in place \(place)")
            }
        }
    }

    @Test func deviceTokenDoesNotPrintItself() throws {
        let token = try #require(DeviceToken("abcd12"))
        #expect("\(token)" == "***")
        #expect(!String(reflecting: token).contains("abcd12"))
    }

    @Test func headersRefuseWhatWouldBreakTheConnection() throws {
        #expect(throws: PushFault.badTopic) { _ = try PushHeaders(topic: "com.x\r\nfoo: 1", pushType: .alert) }
        #expect(throws: PushFault.badTopic) { _ = try PushHeaders(topic: "", pushType: .alert) }
        #expect(throws: PushFault.badCollapseID) {
            _ = try PushHeaders(topic: "com.x", pushType: .alert, collapseID: Array(repeating: 65, count: 65))
        }
        #expect(throws: PushFault.badPriority) { _ = try PushHeaders(topic: "com.x", pushType: .background) }
        #expect(throws: PushFault.badExpiration) {
            _ = try PushHeaders(topic: "com.x", pushType: .alert, expirationSeconds: -1)
        }
        let zero = try PushHeaders(topic: "com.x", pushType: .voip, expirationSeconds: 0)
        #expect(zero.expirationSeconds == 0)
    }

    @Test func payloadsAreMeasuredByType() throws {
        let token = try #require(DeviceToken("ab"))
        let alert = try PushHeaders(topic: "com.x", pushType: .alert)
        let voip = try PushHeaders(topic: "com.x.voip", pushType: .voip)
        let activity = try PushHeaders(topic: "com.x.push-type.liveactivity", pushType: .liveactivity)
        func push(_ headers: PushHeaders, _ size: Int) -> Push {
            Push(
                tag: 1, token: token, headers: headers, id: PushID(high: 1, low: 2),
                payload: Array(repeating: 32, count: size))
        }
        #expect(push(alert, 4096).fault(hasToken: true) == nil)
        #expect(push(alert, 4097).fault(hasToken: true) == .payloadTooLarge(max: 4096))
        #expect(push(voip, 5120).fault(hasToken: true) == nil)
        #expect(push(alert, 0).fault(hasToken: true) == .payloadEmpty)
        #expect(push(activity, 9).fault(hasToken: false) == .needsTokenCredential)
    }
}
