/// The `pid` of a payload, which is also its `apns-id`: every attempt and every worker makes the same one.
///
/// A UUID of version 8 (RFC 9562, 5.8) over (app, uid, msg_id, kind, token). Its bits are held; the text is made on
/// demand, without the heap.
public struct PushIdentity: Sendable, Hashable {
    public let high: UInt64
    public let low: UInt64

    /// Bytes of the text form, 8-4-4-4-12.
    public static let textCount = 36

    /// - Parameters:
    ///   - kind: `message`, `revoke` or `live_activity`: pushes about one message that are not the same push.
    ///   - msgID: for a Live Activity its event id, since `msg_id` is optional there.
    ///   - tokenHex: lower case, as `TokenRecord` holds it.
    public static func make(app: String, uid: String, msgID: String, kind: String, tokenHex: String) -> PushIdentity {
        Stem(app: app, uid: uid, msgID: msgID, kind: kind).id(tokenHex: tokenHex)
    }

    /// What the ids of all pushes of one (app, uid, msg_id, kind) have in common, worked out once.
    public struct Stem: Sendable {
        private var hash = SipHash128(key0: PushIdentity.key0, key1: PushIdentity.key1)

        public init(app: String, uid: String, msgID: String, kind: String) {
            hash.update(lengthThen: app)
            hash.update(lengthThen: uid)
            hash.update(lengthThen: msgID)
            hash.update(lengthThen: kind)
        }

        /// The id of the push to a token; without one that of the pair itself.
        public func id(tokenHex: String = "") -> PushIdentity {
            var hash = hash
            hash.update(lengthThen: tokenHex)
            let (first, second) = hash.finish()
            return PushIdentity(first, second)
        }
    }

    /// An id that came back.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// 122 of the given bits, with version and variant put in their places.
    init(_ first: UInt64, _ second: UInt64) {
        high = first.byteSwapped & 0xffff_ffff_ffff_0fff | 0x8000
        low = second.byteSwapped & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
    }

    /// Its bits are spread as they are: half of them do for a table.
    public func hash(into hasher: inout Hasher) { hasher.combine(low) }

    /// The 36 bytes of the canonical lower-case form.
    public var ascii: InlineArray<36, UInt8> {
        var text = InlineArray<36, UInt8>(repeating: 0)
        withUnsafeMutableBytes(of: &text) { write(to: $0) }
        return text
    }

    /// Writes the 36 bytes to the beginning of memory that holds as many.
    public func write(to bytes: UnsafeMutableRawBufferPointer) {
        let first = HexDigits.eight(UInt32(truncatingIfNeeded: high &>> 32))
        let second = HexDigits.eight(UInt32(truncatingIfNeeded: high)).littleEndian
        let third = HexDigits.eight(UInt32(truncatingIfNeeded: low &>> 32)).littleEndian
        let fourth = HexDigits.eight(UInt32(truncatingIfNeeded: low))
        bytes.storeBytes(of: first, as: UInt64.self)
        for dash in [8, 13, 18, 23] { bytes[dash] = UInt8(ascii: "-") }
        bytes.storeBytes(of: UInt32(truncatingIfNeeded: second), toByteOffset: 9, as: UInt32.self)
        bytes.storeBytes(of: UInt32(truncatingIfNeeded: second &>> 32), toByteOffset: 14, as: UInt32.self)
        bytes.storeBytes(of: UInt32(truncatingIfNeeded: third), toByteOffset: 19, as: UInt32.self)
        bytes.storeBytes(of: UInt32(truncatingIfNeeded: third &>> 32), toByteOffset: 24, as: UInt32.self)
        bytes.storeBytes(of: fourth, toByteOffset: 28, as: UInt64.self)
    }

    // Fixed for ever: other values would make other ids of pushes that are under way. ("carillon" "pushpid1" in ASCII.)
    private static var key0: UInt64 { 0x6361_7269_6c6c_6f6e }
    private static var key1: UInt64 { 0x7075_7368_7069_6431 }
}

extension PushIdentity: CustomStringConvertible {
    public var description: String {
        String(unsafeUninitializedCapacity: Self.textCount) { text in
            write(to: UnsafeMutableRawBufferPointer(text))
            return Self.textCount
        }
    }
}
