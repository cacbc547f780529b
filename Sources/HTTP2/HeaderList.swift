// SPDX-License-Identifier: Apache-2.0
import CNghttp2

/// A header list for sending, kept between messages so that only differing values are written again.
///
/// All bytes are in one buffer, next to nghttp2's own field array. A request of the same kind as the last one costs
/// only a copy of the path and the identifier. nghttp2 copies the fields on submission, so the list may change right
/// after it. Owned by one thread. This type checks values (RFC 9113 section 8.2.1), because nghttp2 does not check what
/// it sends.
public struct HeaderList: ~Copyable {
    /// Whether HPACK may put a field into its table.
    public enum Indexing: Sendable {
        /// nghttp2 decides. It keeps `:path` and `authorization` out of the table, as Apple asks.
        case allowed
        /// Literal, never indexed: for values that differ with each message.
        case never
    }

    private enum Check { case value, path, authority }

    private struct Room {
        var start: Int
        var capacity: Int
        var check: Check
    }

    private var bytes: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private var used = 0
    private var fields: [nghttp2_nv] = []
    private var rooms: [Room] = []

    /// Creates an empty list. `reserving` is the initial capacity in bytes.
    public init(reserving: Int = 1024) {
        capacity = max(64, reserving)
        bytes = .allocate(capacity: capacity)
        fields.reserveCapacity(16)
        rooms.reserveCapacity(16)
    }

    deinit { bytes.deallocate() }

    /// Number of fields.
    public var count: Int { fields.count }

    /// Adds a field and returns its place for `set`. Pseudo-header fields must come first.
    ///
    /// Throws `badHeader` for an invalid value and leaves the list unchanged.
    @discardableResult
    public mutating func append(
        _ name: StaticString, _ value: some Collection<UInt8>, indexing: Indexing = .allowed
    ) throws(HTTP2Fault) -> Int {
        let check: Check =
            switch name.description {
            case ":path": .path
            case ":authority": .authority
            default: .value
            }
        let nameStart = reserve(name.utf8CodeUnitCount)
        (bytes + nameStart).update(from: name.utf8Start, count: name.utf8CodeUnitCount)
        var field = nghttp2_nv()
        field.name = bytes + nameStart
        field.namelen = name.utf8CodeUnitCount
        field.value = field.name
        field.flags = UInt8(indexing == .never ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : NGHTTP2_NV_FLAG_NONE.rawValue)
        fields.append(field)
        rooms.append(Room(start: nameStart, capacity: 0, check: check))
        let place = fields.count - 1
        guard set(place, Array(value)) else {
            truncate(to: place)
            throw HTTP2Fault(.badHeader, detail: "the value of \(name) is not allowed in a header")
        }
        return place
    }

    /// Adds a field with a text value.
    @discardableResult
    public mutating func append(
        _ name: StaticString, _ value: String, indexing: Indexing = .allowed
    ) throws(HTTP2Fault) -> Int {
        try append(name, Array(value.utf8), indexing: indexing)
    }

    /// Replaces the value of field `place`. Returns false without a change for an invalid value.
    public mutating func set(_ place: Int, _ value: UnsafeRawBufferPointer) -> Bool {
        guard isFit(value, rooms[place].check) else { return false }
        if value.count > rooms[place].capacity { makeRoom(place, value.count) }
        let target = bytes + rooms[place].start
        if let source = value.baseAddress {
            UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: value.count)
        }
        fields[place].value = target
        fields[place].valuelen = value.count
        return true
    }

    /// Replaces the value of field `place` with an array's bytes.
    public mutating func set(_ place: Int, _ value: [UInt8]) -> Bool {
        // Not a closure over self: the pointer is valid only during this call.
        value.withUnsafeBytes { set(place, $0) }
    }

    /// Lets `body` write the value of field `place` in place: `count` bytes that are valid by construction.
    ///
    /// For values built for every message from checked parts, such as hexadecimal digits. They are not checked again.
    public mutating func write(_ place: Int, count: Int, _ body: (UnsafeMutableRawPointer) -> Void) {
        if count > rooms[place].capacity { makeRoom(place, count) }
        body(bytes + rooms[place].start)
        fields[place].value = bytes + rooms[place].start
        fields[place].valuelen = count
    }

    private mutating func makeRoom(_ place: Int, _ count: Int) {
        // Leaves room to grow, so that a longer token does not move the field again.
        let wanted = count + count / 2 + 16
        rooms[place].start = reserve(wanted)
        rooms[place].capacity = wanted
    }

    /// Changes whether field `place` may be indexed from now on.
    ///
    /// Apple asks for `apns-id`, `apns-expiration` and `apns-collapse-id` to be indexed once and literal afterwards.
    public mutating func setIndexing(_ place: Int, _ indexing: Indexing) {
        fields[place].flags = UInt8(
            indexing == .never ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : NGHTTP2_NV_FLAG_NONE.rawValue)
    }

    /// Drops the fields from `count` on, for lists with optional last fields.
    public mutating func truncate(to count: Int) {
        guard count < fields.count else { return }
        fields.removeLast(fields.count - count)
        rooms.removeLast(rooms.count - count)
        if fields.isEmpty { used = 0 }
    }

    /// Gives a submit call access to the fields.
    func withFields<R>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> R) -> R {
        fields.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
    }

    private func isFit(_ value: UnsafeRawBufferPointer, _ check: Check) -> Bool {
        let start = value.bindMemory(to: UInt8.self).baseAddress
        switch check {
        case .value: return value.isEmpty || nghttp2_check_header_value_rfc9113(start, value.count) != 0
        case .path: return !value.isEmpty && nghttp2_check_path(start, value.count) != 0
        case .authority: return !value.isEmpty && nghttp2_check_authority(start, value.count) != 0
        }
    }

    /// Reserves `count` bytes at the end of the buffer and returns their position.
    private mutating func reserve(_ count: Int) -> Int {
        if used + count > capacity { compact(spare: count) }
        defer { used += count }
        return used
    }

    /// Moves all used bytes into a new buffer with room for `spare` more.
    private mutating func compact(spare: Int) {
        let living = fields.indices.reduce(0) { $0 + fields[$1].namelen + rooms[$1].capacity }
        let size = (living + spare) * 2
        let fresh = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
        var end = 0
        for index in fields.indices {
            (fresh + end).update(from: fields[index].name, count: fields[index].namelen)
            fields[index].name = fresh + end
            end += fields[index].namelen
            (fresh + end).update(from: fields[index].value, count: min(fields[index].valuelen, rooms[index].capacity))
            fields[index].value = fresh + end
            rooms[index].start = end
            end += rooms[index].capacity
        }
        bytes.deallocate()
        bytes = fresh
        capacity = size
        used = end
    }
}
