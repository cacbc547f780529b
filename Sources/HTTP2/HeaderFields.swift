// SPDX-License-Identifier: Apache-2.0
/// A received header list: a view that is valid only during the call.
public struct HeaderFields: ~Copyable {
    /// The position of one field in the list's bytes.
    struct Field {
        var nameStart: UInt32
        var nameCount: UInt32
        var valueStart: UInt32
        var valueCount: UInt32
    }

    private let fields: UnsafeBufferPointer<Field>
    private let arena: UnsafeRawBufferPointer
    /// The response status; 0 in a request.
    public let status: Int

    init(fields: UnsafeBufferPointer<Field>, arena: UnsafeRawBufferPointer, status: Int) {
        self.fields = fields
        self.arena = arena
        self.status = status
    }

    /// Number of fields, pseudo-header fields included.
    public var count: Int { fields.count }

    /// The name of field `index`, lower-case. `index` must be below `count`.
    public func name(_ index: Int) -> UnsafeRawBufferPointer {
        let field = fields[index]
        return UnsafeRawBufferPointer(rebasing: arena[Int(field.nameStart)..<Int(field.nameStart + field.nameCount)])
    }

    /// The value of field `index`. `index` must be below `count`.
    public func value(_ index: Int) -> UnsafeRawBufferPointer {
        let field = fields[index]
        return UnsafeRawBufferPointer(rebasing: arena[Int(field.valueStart)..<Int(field.valueStart + field.valueCount)])
    }

    /// The value of the first field named `name` (lower-case), or nil.
    public func first(_ name: StaticString) -> UnsafeRawBufferPointer? {
        let wanted = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        for index in 0..<count where Self.equal(self.name(index), wanted) { return value(index) }
        return nil
    }

    /// The number of fields called `name`.
    public func occurrences(_ name: StaticString) -> Int {
        let wanted = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        var result = 0
        for index in 0..<count where Self.equal(self.name(index), wanted) { result += 1 }
        return result
    }

    private static func equal(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        left.count == right.count && left.elementsEqual(right)
    }
}
