// SPDX-License-Identifier: Apache-2.0
import JSON
import Recording
import Testing

/// A recording gives back what was recorded, byte for byte.
@Suite struct RecordLineTests {
    private static func read(_ line: some Collection<UInt8>) -> RecordLine? {
        RecordLine(Array(line), JSONParser(maxBytes: RecordLine.bytesMax))
    }

    @Test(
        arguments: [
            #"{"v":1,"a":[null]}"#, "{} ", " {}", "{\n}", "null", "", "no json", "\u{0}\r\n\"\\\u{2028}",
            // As deep as an event may be.
            String(repeating: "[", count: 31) + "1" + String(repeating: "]", count: 31),
            String(repeating: "[", count: 32) + "1" + String(repeating: "]", count: 32),
        ])
    func aRecordIsReadAsItWasWritten(value: String) {
        for key in [nil, [], Array("k".utf8), [0xFF, 0x00]] as [[UInt8]?] {
            let record = RecordLine(topic: "im.events", key: key, value: Array(value.utf8), timestampMs: 7)
            let line = RecordLineWriter().bytes(of: record)
            #expect(line.filter { $0 == 0x0A }.count == 1 && line.last == 0x0A)
            #expect(Self.read(line.dropLast()) == record)
        }
    }

    @Test func bytesThatAreNoTextAndNullRecordsComeBack() {
        for value in [[0xFF], nil] as [[UInt8]?] {
            let record = RecordLine(topic: "t", key: nil, value: value, timestampMs: nil)
            #expect(Self.read(RecordLineWriter().bytes(of: record).dropLast()) == record)
        }
    }

    /// As a null record it would delete what its key names.
    @Test(
        arguments: [
            #"{"value":5}"#, #"{"value":true}"#, #"{"value_hex":"zz"}"#, #"{"value_hex":"0"}"#,
            #"{"value":{},"headers":{}}"#, #"{"value":{},"headers":[["a"]]}"#, #"{"value":{},"headers":[["a",5]]}"#,
            #"{"value":{},"headers":[["a","b","c"]]}"#, #"{"value":{},"headers":[[1,"b"]]}"#,
            #"{"value":{},"headers":[["a",{"hex":"f"}]]}"#,
        ])
    func aLineWithAValueOfNoSuchFormIsNoRecording(line: String) {
        #expect(Self.read(Array(line.utf8)) == nil)
        #expect(RecordLine.value(in: Array(line.utf8)) == Array(line.utf8))
        #expect(RecordLine.isBroken(Array(line.utf8), JSONParser()))
    }

    @Test(arguments: ["no json", "[]", "{}", #"{"kind":"read","value":5}"#, #"{"value":null}"#, #"{"value":{}}"#])
    func anEventAndAReadableLineAreNotBroken(line: String) {
        #expect(!RecordLine.isBroken(Array(line.utf8), JSONParser()))
    }

    @Test func headersComeBackInTheirOrder() {
        let headers = [("a", [0x41]), ("a", nil), ("", []), ("b", [0xFF, 0x00])] as [(String, [UInt8]?)]
        let record = RecordLine(
            topic: "t", key: nil, value: Array("{}".utf8), timestampMs: 1,
            headers: headers.map { RecordLine.Header(name: $0.0, value: $0.1) })
        #expect(Self.read(RecordLineWriter().bytes(of: record).dropLast()) == record)
        let many = #"{"value":{},"headers":["# + String(repeating: #"["a","b"],"#, count: 10_001).dropLast() + "]}"
        #expect(Self.read(Array(many.utf8)) == nil)
    }
}
