// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Simulator
import Testing

@Suite struct RequestCheckTests {
    /// A good request, with some fields replaced; nil leaves one out.
    private static func head(_ changes: [RequestHead.Field: String?] = [:]) -> RequestHead {
        var fields: [RequestHead.Field: String?] = [
            .method: "POST", .path: "/3/device/00fc13adff", .topic: "com.example.im", .pushType: "alert",
            .identifier: "123e4567-e89b-12d3-a456-426655440000", .expiration: "0", .priority: "10",
            .collapseID: "one",
        ]
        fields.merge(changes) { $1 }
        var head = RequestHead()
        for field in RequestHead.Field.allCases {
            guard let value = fields[field] ?? nil else { continue }
            var text = value
            text.withUTF8 { head.add(field, UnsafeRawBufferPointer($0)) }
        }
        return head
    }

    private let check = RequestCheck(topics: ["com.example.im", "com.example.other"])

    @Test func aGoodRequestPasses() {
        #expect(check.head(Self.head()) == nil)
        #expect(
            check.head(Self.head([.identifier: nil, .expiration: nil, .collapseID: nil])) == nil)
    }

    @Test(arguments: [
        (RequestHead.Field.method, "GET" as String?, 405, "MethodNotAllowed"),
        (.path, "/3/devices/00", 404, "BadPath"),
        (.path, "/", 404, "BadPath"),
        (.path, "/3/device/", 400, "MissingDeviceToken"),
        (.path, "/3/device", 400, "MissingDeviceToken"),
        (.path, "/3/device/xyz0", 400, "BadDeviceToken"),
        (.path, "/3/device/abc", 400, "BadDeviceToken"),
        (.path, "/3/device/ab/cd", 400, "BadDeviceToken"),
        (.topic, nil, 400, "MissingTopic"),
        (.topic, "", 400, "MissingTopic"),
        (.topic, "com.example.unknown", 400, "TopicDisallowed"),
        (.topic, "com.example.im.voip", 400, "BadTopic"),
        (.pushType, "loud", 400, "InvalidPushType"),
        (.pushType, "voip", 400, "BadTopic"),
        (.pushType, "liveactivity", 400, "BadTopic"),
        (.priority, "11", 400, "BadPriority"),
        (.priority, "", 400, "BadPriority"),
        (.expiration, "soon", 400, "BadExpirationDate"),
        (.expiration, "-1", 400, "BadExpirationDate"),
        (.expiration, "", 400, "BadExpirationDate"),
        (.identifier, "123G4567-e89b-12d3-a456-426655440000", 400, "BadMessageId"),
        (.identifier, "123E4567-E89B-12D3-A456-42665544000\u{10}", 400, "BadMessageId"),
        (.identifier, "123e4567e89b12d3a456426655440000", 400, "BadMessageId"),
        (.identifier, "123e4567-e89b-12d3-a456-42665544000", 400, "BadMessageId"),
        (.collapseID, String(repeating: "c", count: 65), 400, "BadCollapseId"),
        (.collapseID, "", 400, "BadCollapseId"),
    ])
    func oneBadFieldIsNamed(field: RequestHead.Field, value: String?, status: Int, reason: String) {
        #expect(check.head(Self.head([field: value])) == Rejection(status, reason))
    }

    @Test(arguments: [
        (PushType.alert, "com.example.im"), (.background, "com.example.im"), (.voip, "com.example.im.voip"),
        (.complication, "com.example.im.complication"), (.fileprovider, "com.example.im.pushkit.fileprovider"),
        (.location, "com.example.im.location-query"), (.liveactivity, "com.example.im.push-type.liveactivity"),
        (.pushtotalk, "com.example.im.voip-ptt"), (.widgets, "com.example.im.push-type.widgets"),
        (.controls, "com.example.im.push-type.controls"), (.mdm, "com.apple.mgmt.External.0000"),
    ])
    func everyPushTypeHasItsTopic(type: PushType, topic: String) {
        let changes: [RequestHead.Field: String?] = [.pushType: type.rawValue, .topic: topic, .priority: "5"]
        #expect(check.head(Self.head(changes)) == nil)
    }

    @Test(arguments: [("5" as String?, nil as String?), ("1", nil), ("10", "BadPriority"), (nil, "BadPriority")])
    func aBackgroundPushMayNotBeImmediate(priority: String?, reason: String?) {
        let changes: [RequestHead.Field: String?] = [.pushType: "background", .priority: priority]
        #expect(check.head(Self.head(changes))?.reason == reason)
    }

    @Test(arguments: ["com.example.im", "com.example.im.voip", "com.example.im.push-type.liveactivity"])
    func aMissingPushTypeIsTheTopics(topic: String) {
        #expect(check.head(Self.head([.pushType: nil, .topic: topic])) == nil)
    }

    @Test func anUpperCaseIdentifierIsGood() {
        #expect(check.head(Self.head([.identifier: "123E4567-E89B-12D3-A456-426655440000"])) == nil)
    }

    @Test func withoutConfiguredTopicsAnyIsGood() {
        #expect(RequestCheck().head(Self.head([.topic: "org.example.any"])) == nil)
        #expect(RequestCheck().head(Self.head([.topic: ".voip", .pushType: "voip"]))?.reason == "BadTopic")
    }

    @Test func aRepeatedFieldIsADuplicate() {
        var head = Self.head()
        Array("5".utf8).withUnsafeBytes { head.add(.priority, $0) }
        #expect(check.head(head) == Rejection(400, "DuplicateHeaders"))
        head.clear()
        #expect(!head.hasDuplicates && head[.priority] == nil)
    }

    @Test func fieldsAreRecognisedByTheirWireNames() {
        var head = RequestHead()
        for field in RequestHead.Field.allCases {
            let name = Array(field.name.description.utf8)
            let value = Array("v\(field.rawValue)".utf8)
            name.withUnsafeBytes { name in value.withUnsafeBytes { head.add(name, $0) } }
        }
        for name in [
            "", ":", "apns-tipoc", "content-type", "user-agent", "x-long-name-here", ":scheme", "apns-pushtype",
        ] {
            let bytes = Array(name.utf8)
            bytes.withUnsafeBytes { head.add($0, UnsafeRawBufferPointer(start: nil, count: 0)) }
        }
        for field in RequestHead.Field.allCases { #expect(head.text(field) == "v\(field.rawValue)") }
        #expect(!head.hasDuplicates)
    }

    @Test(arguments: [
        (0, true, PushType.alert, 400, "PayloadEmpty"), (4096, true, .alert, 0, ""),
        (4097, true, .alert, 413, "PayloadTooLarge"), (5120, true, .voip, 0, ""),
        (5121, true, .voip, 413, "PayloadTooLarge"), (4097, true, .liveactivity, 413, "PayloadTooLarge"),
        (10, false, .alert, 400, "PayloadEmpty"),
    ])
    func payloadsHaveTheirLimits(bytes: Int, isObject: Bool, type: PushType, status: Int, reason: String) {
        let expected = status == 0 ? nil : Rejection(status, reason)
        #expect(check.payload(bytes: bytes, isObject: isObject, type: type) == expected)
    }
}
