// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// A password or key that prints as `***` and is wiped with its last copy.
///
/// Printing, interpolation, `dump` and mirrors show asterisks. Only `withBytes` and `text` give the bytes, so each use
/// can be found by name. The caller must protect any copy.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let storage: Storage

    public init(_ text: String) { storage = Storage(Array(text.utf8)) }

    public init(bytes: [UInt8]) { storage = Storage(bytes) }

    /// Copies memory that is valid during the call.
    public init(copying bytes: UnsafeRawBufferPointer) { storage = Storage(bytes) }

    /// Calls back with room for `byteCount` bytes to fill.
    public init(byteCount: Int, filling: (UnsafeMutableRawBufferPointer) -> Void) {
        storage = Storage(byteCount: byteCount)
        filling(storage.bytes)
    }

    /// Gives access to the bytes during the call.
    public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(storage.bytes))
    }

    /// A zero-terminated copy for C, wiped when the call returns.
    public func withCString<Result>(_ body: (UnsafePointer<CChar>) throws -> Result) rethrows -> Result {
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: storage.bytes.count + 1)
        copy.initialize(repeating: 0, count: storage.bytes.count + 1)
        if let start = storage.bytes.baseAddress {
            UnsafeMutableRawPointer(copy).copyMemory(from: start, byteCount: storage.bytes.count)
        }
        defer {
            explicit_bzero(copy, storage.bytes.count + 1)
            copy.deallocate()
        }
        return try body(copy)
    }

    /// A copy as text. It cannot be wiped, so prefer `withBytes`.
    public var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }

    public var isEmpty: Bool { storage.bytes.isEmpty }
    public var description: String { "***" }
    public var debugDescription: String { "***" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Compares all bytes, so that the time depends only on the length.
    public static func == (left: Secret, right: Secret) -> Bool {
        guard left.storage.bytes.count == right.storage.bytes.count else { return false }
        var difference: UInt8 = 0
        for (one, other) in zip(left.storage.bytes, right.storage.bytes) { difference |= one ^ other }
        return difference == 0
    }

    private final class Storage: @unchecked Sendable {
        // Unchecked: written once in init, wiped in deinit without other references, only read in between.
        let bytes: UnsafeMutableRawBufferPointer

        init(_ source: some Collection<UInt8>) {
            bytes = .allocate(byteCount: source.count, alignment: 1)
            bytes.copyBytes(from: source)
        }

        init(byteCount: Int) {
            bytes = .allocate(byteCount: byteCount, alignment: 1)
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
        }

        deinit {
            if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
            bytes.deallocate()
        }
    }
}
