// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore
import Testing

@testable import Worker

/// Records that are checked one after the other and then read one after the other.
struct CheckedRecordsTests {
    @Test func eachIsReadFromItsOwnPlace() throws {
        let reader = EventReader(apps: ["im"])
        var texts = (0..<EventReader.checkedMax).map { #"{"v":1,"kind":"song","app":"im\#($0)"}"# }
        for place in texts.indices where place % 3 != 0 {
            texts[place] = BadRecordTests.message(#""msg_id":"m\#(place)""#)
        }
        texts[5] = "{"
        for (place, text) in texts.enumerated() {
            Array(text.utf8).withUnsafeBytes { reader.check($0, place: place) }
        }
        // In between, a record that is longer is read at once.
        _ = try reader.read(Array(BadRecordTests.message(#""msg_id":"other""#).utf8), of: .events)
        for (place, text) in texts.enumerated() {
            Array(text.utf8).withUnsafeBytes { bytes in
                do throws(BadRecord) {
                    let event = try reader.read(bytes, place: place, of: .events, latestMs: .max)
                    guard case .message(let message) = event.body else {
                        Issue.record("not a message")
                        return
                    }
                    #expect(message.value.msgID == "m\(place)")
                } catch {
                    #expect(place % 3 == 0 || place == 5)
                    #expect(error.rule == (place == 5 ? .brokenJSON : .unknownApp))
                }
            }
        }
    }

    @Test func eachComesOutOnceWithItsValueAndKey() throws {
        var records = CheckedRecords()
        for round in 0..<3 {
            let given = (0..<EventReader.checkedMax).map { offset in
                (
                    value: [UInt8](repeating: UInt8(offset), count: (offset + round) % 5 * 700),
                    key: [nil, [], [1, 2, UInt8(offset)]][(offset + round) % 3] as [UInt8]?,
                    origin: EventJob.Origin.alone(Int32(offset))
                )
            }
            for one in given {
                one.value.withUnsafeBytes { value in
                    if let key = one.key {
                        key.withUnsafeBytes { records.append(value, key: $0, one.origin) }
                    } else {
                        records.append(value, key: nil, one.origin)
                    }
                }
            }
            #expect(records.count == given.count)
            var next = 0
            records.takeAll { place, value, key, origin in
                #expect(place == next && Array(value) == given[next].value && key.map { Array($0) } == given[next].key)
                #expect(origin.partition == given[next].origin.partition)
                next += 1
            }
            #expect(next == given.count && records.count == 0)
        }
    }
}
