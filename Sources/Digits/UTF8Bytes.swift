// SPDX-License-Identifier: Apache-2.0
extension String {
    /// Gives access to the UTF-8 bytes during `body`. Inlined, because a call for the bytes of each text takes longer than
    /// most uses of them.
    @inlinable @inline(__always)
    public func withUTF8Bytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
        return withCopiedBytes(body)
    }

    /// For a text that is not in memory as UTF-8, which this platform does not make.
    @inlinable @inline(never)
    func withCopiedBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var copy = self
        return copy.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}
