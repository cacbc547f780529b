// SPDX-License-Identifier: Apache-2.0
/// The keys to look for in one kind of object, found by hash instead of one comparison per key.
///
/// The cases are numbered from 0 without gaps.
public protocol JSONKey: RawRepresentable, CaseIterable, Sendable where RawValue == Int {
    var name: StaticString { get }
}

/// A hash table from the names of `Key` to their numbers, with the positions found last. Created once, used by one
/// thread, for one object at a time.
public final class JSONKeyTable<Key: JSONKey> {
    @usableFromInline let slots: UnsafeMutablePointer<Slot>
    @usableFromInline let mask: Int
    /// Tape indices by key, 0 if absent. Kept here, so that passing fields on copies nothing.
    @usableFromInline let found: UnsafeMutablePointer<UInt32>
    @usableFromInline let count: Int
    @usableFromInline var generation: UInt32 = 0
    @usableFromInline let unknown: JSONUnknownKeys

    @usableFromInline
    struct Slot {
        @usableFromInline var name: UnsafePointer<UInt8>?
        @usableFromInline var length: Int
        @usableFromInline var key: Int
        /// The first eight bytes of the name. Most names are no longer.
        @usableFromInline var head: UInt64
    }

    /// - Parameter unknown: gets the keys that the table does not know.
    public init(unknown: JSONUnknownKeys = JSONUnknownKeys()) {
        self.unknown = unknown
        // At least four slots per key, so that a probe of an unknown name ends soon.
        var size = 8
        while size < Key.allCases.count * 4 { size *= 2 }
        mask = size - 1
        count = Key.allCases.count
        found = .allocate(capacity: count)
        found.initialize(repeating: 0, count: count)
        slots = .allocate(capacity: size)
        slots.initialize(repeating: Slot(name: nil, length: 0, key: 0, head: 0), count: size)
        for key in Key.allCases {
            precondition(key.rawValue >= 0 && key.rawValue < count && key.name.hasPointerRepresentation)
            let start = key.name.utf8Start
            let length = key.name.utf8CodeUnitCount
            var at = Self.hash(start, length) & mask
            while slots[at].name != nil { at = (at + 1) & mask }
            let head = (0..<min(8, length)).reversed().reduce(0) { $0 &<< 8 | UInt64(start[$1]) }
            slots[at] = Slot(name: start, length: length, key: key.rawValue, head: head)
        }
    }

    deinit {
        slots.deallocate()
        found.deallocate()
    }

    /// Records the position of each known key's value. The last of a repeated key counts, and null counts as absent
    /// (contract section 0). Only an object has fields. The result is valid until the next call.
    @inlinable
    public func fields(of object: JSONCursor) -> JSONFields<Key> {
        found.update(repeating: 0, count: count)
        generation &+= 1
        var members = object.members
        members: while let member = members.next() {
            guard let name = member.key.utf8, let start = name.baseAddress else { continue }
            let head = Self.head(start, name.count)
            var at = Self.hash(start, name.count) & mask
            while let candidate = slots[at].name {
                if slots[at].length == name.count, slots[at].head == head,
                    name.count <= 8 || Self.equal(candidate, start, name.count)
                {
                    found[slots[at].key] =
                        member.value.isNull ? 0 : UInt32(truncatingIfNeeded: member.value.index)
                    continue members
                }
                at = (at &+ 1) & mask
            }
            unknown.add(member.key, of: object) { Key.allCases.map { "\($0.name)" } }
        }
        return JSONFields(object: object, table: self)
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

    /// The first eight bytes of a name in the parser's buffer, the first byte lowest, zero-padded.
    ///
    /// Eight bytes can always be read there, because simdjson keeps 64 bytes of padding after its strings.
    @inlinable
    static func head(_ start: UnsafePointer<UInt8>, _ length: Int) -> UInt64 {
        let word = UInt64(littleEndian: UnsafeRawPointer(start).loadUnaligned(as: UInt64.self))
        return length < 8 ? word & ((1 &<< (UInt64(truncatingIfNeeded: length) &* 8)) &- 1) : word
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

/// The positions of one object's known values, until its table is used for another object.
@frozen
public struct JSONFields<Key: JSONKey> {
    public let object: JSONCursor
    // Unowned: tables live as long as the reader that uses them, and reference counting would cost more than the
    // lookup.
    @usableFromInline unowned(unsafe) let table: JSONKeyTable<Key>
    @usableFromInline let generation: UInt32

    @inlinable
    init(object: JSONCursor, table: JSONKeyTable<Key>) {
        self.object = object
        self.table = table
        generation = table.generation
    }

    /// The key's value; nil if absent or null.
    @inlinable
    public subscript(key: Key) -> JSONCursor? {
        assert(generation == table.generation, "the table has been used for another object")
        let index = table.found[key.rawValue]
        return index == 0 ? nil : JSONCursor(view: object.view, index: Int(index))
    }
}
