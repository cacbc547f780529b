// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct PushIDPrefixTests {
    /// The reference implementation's vectors for 128 bits: key 00…0f, message 00…(n-1).
    @Test(arguments: [
        (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
        (2, "8177228da4a45dc7fca38bdef60affe4"), (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"), (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        (63, "5150d1772f50834a503e069a973fbd7c"),
    ])
    func sipHashMatchesTheReference(length: Int, digest: String) {
        for split in 0...length {
            var hash = SipHash128(key0: 0x0706_0504_0302_0100, key1: 0x0f0e_0d0c_0b0a_0908)
            let bytes = (0..<length).map { UInt8($0) }
            bytes[..<split].withUnsafeBytes { hash.update($0) }
            bytes[split...].withUnsafeBytes { hash.update($0) }
            let (first, second) = hash.finish()
            #expect(Self.hex(first) + Self.hex(second) == digest)
        }
    }

    @Test func aWordIsItsEightBytesAtAnyPlace() {
        for offset in 0..<9 {
            var bytes = SipHash128(key0: 1, key1: 2)
            var word = SipHash128(key0: 1, key1: 2)
            func feed(_ hash: inout SipHash128, _ part: some Sequence<Int>) {
                for byte in part { [UInt8(byte)].withUnsafeBytes { hash.update($0) } }
            }
            feed(&bytes, 0..<offset)
            feed(&word, 0..<offset)
            feed(&bytes, 1...8)
            word.update(word: 0x0807_0605_0403_0201)
            feed(&bytes, 9...9)
            feed(&word, 9...9)
            #expect(bytes.finish() == word.finish())
        }
    }

    @Test func anIDIsACanonicalUUIDOfVersionEight() {
        let text = Self.make().description
        let groups = text.split(separator: "-")
        #expect(text.utf8.count == 36)
        #expect(groups.map(\.count) == [8, 4, 4, 4, 12])
        #expect(groups.joined().allSatisfy { "0123456789abcdef".contains($0) })
        #expect(groups[2].first == "8")
        #expect(groups[3].first.map { "89ab".contains($0) } == true)
    }

    /// Never to change: pushes that are under way when a worker is replaced carry it.
    @Test func anIDIsTheSameForEver() {
        #expect(Self.make().description == "34190b03-a474-8123-a328-7d1507aa048c")
        #expect(Self.make() == Self.make())
    }

    @Test func eachPartMattersAndNoBorderBlurs() {
        let ids: Set<PushID> = [
            Self.make(), Self.make(app: "im2"), Self.make(uid: "u2"), Self.make(msgID: "m2"), Self.make(kind: "revoke"),
            Self.make(token: "ab"), Self.make(app: "imu", uid: "1"), Self.make(app: "i", uid: "mu1"),
            Self.make(uid: "u1m", msgID: "1"), Self.make(uid: "", msgID: "u1m1"),
        ]
        #expect(ids.count == 10)
    }

    private static func make(
        app: String = "im", uid: String = "u1", msgID: String = "m1", kind: String = "message", token: String = "aabb"
    ) -> PushID {
        PushID.make(app: app, uid: uid, msgID: msgID, kind: kind, tokenHex: token)
    }

    private static func hex(_ word: UInt64) -> String {
        (0..<8).map { index in
            let byte = UInt8(truncatingIfNeeded: word >> UInt64(index * 8))
            return (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }
}
