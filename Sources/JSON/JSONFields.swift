/// The keys that are looked for in one kind of object, found by hash instead of one comparison per key.
///
/// Cases are numbered from 0 without a gap, at most 48.
public protocol JSONKey: RawRepresentable, CaseIterable, Sendable where RawValue == Int {
    var name: StaticString { get }
}

/// A hash table from the names of `Key` to their numbers: made once, read by one thread.
public final class JSONKeyTable<Key: JSONKey> {
    @usableFromInline let slots: UnsafeMutablePointer<Slot>
    @usableFromInline let mask: Int

    @usableFromInline
    struct Slot {
        @usableFromInline var name: UnsafePointer<UInt8>?
        @usableFromInline var length: Int
        @usableFromInline var key: Int
    }

    public init() {
        // At least four slots per key, so that a probe of an unknown name ends soon.
        var size = 8
        while size < Key.allCases.count * 4 { size *= 2 }
        mask = size - 1
        slots = .allocate(capacity: size)
        slots.initialize(repeating: Slot(name: nil, length: 0, key: 0), count: size)
        for key in Key.allCases {
            precondition(key.rawValue >= 0 && key.rawValue < 48 && key.name.hasPointerRepresentation)
            let start = key.name.utf8Start
            let length = key.name.utf8CodeUnitCount
            var at = Self.hash(start, length) & mask
            while slots[at].name != nil { at = (at + 1) & mask }
            slots[at] = Slot(name: start, length: length, key: key.rawValue)
        }
    }

    deinit {
        slots.deallocate()
    }

    /// Notes where the value of each known key stands. The last of a repeated key counts, null is as absent
    /// (contract section 0). Anything but an object has no fields.
    @inlinable
    public func fields(of object: JSONCursor) -> JSONFields<Key> {
        var fields = JSONFields<Key>(object: object)
        var members = object.members
        while let member = members.next() {
            guard let name = member.key.utf8, let start = name.baseAddress else { continue }
            var at = Self.hash(start, name.count) & mask
            while let candidate = slots[at].name {
                if slots[at].length == name.count, Self.equal(candidate, start, name.count) {
                    fields.indices[slots[at].key] =
                        member.value.isNull ? 0 : UInt32(truncatingIfNeeded: member.value.index)
                    break
                }
                at = (at &+ 1) & mask
            }
        }
        return fields
    }

    @inlinable
    static func hash(_ start: UnsafePointer<UInt8>, _ length: Int) -> Int {
        guard length > 0 else { return 0 }
        let first = UInt64(start[0])
        let middle = UInt64(start[length &>> 1])
        let last = UInt64(start[length &- 1])
        let mixed = (first | middle &<< 8 | last &<< 16 | UInt64(truncatingIfNeeded: length) &<< 24)
        return Int(truncatingIfNeeded: (mixed &* 0x9E37_79B9_7F4A_7C15) &>> 40)
    }

    @inlinable
    static func equal(_ one: UnsafePointer<UInt8>, _ other: UnsafePointer<UInt8>, _ length: Int) -> Bool {
        var at = 0
        while at < length {
            if one[at] != other[at] { return false }
            at &+= 1
        }
        return true
    }
}

/// Where the known values of one object stand.
@frozen
public struct JSONFields<Key: JSONKey> {
    public let object: JSONCursor
    /// Tape indices; 0, where no value can be, stands for absent.
    @usableFromInline var indices = InlineArray<48, UInt32>(repeating: 0)

    @inlinable
    init(object: JSONCursor) {
        self.object = object
    }

    /// The key's value; nil where it is absent or null.
    @inlinable
    public subscript(key: Key) -> JSONCursor? {
        let index = indices[key.rawValue]
        return index == 0 ? nil : JSONCursor(view: object.view, index: Int(index))
    }
}
