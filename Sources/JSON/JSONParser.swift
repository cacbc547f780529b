// SPDX-License-Identifier: Apache-2.0
import CSimdjson

/// Reads JSON documents one after another with reused buffers: one per thread.
///
/// simdjson checks the whole document (structure, UTF-8, escapes, depth) and produces a tape, which ``JSONCursor``
/// walks without C calls. Buffers grow to the longest document, at most about 16 times `maxBytes`, and remain.
public final class JSONParser {
    public let maxBytes: Int
    private let maxDepth: Int
    private let handle: OpaquePointer?
    private let view: UnsafeMutablePointer<JSONView>
    /// The document of the last `check`; if it was refused, `refusal` has the fault.
    private var tape = csimdjson_tape()
    private var refusal: JSONFault?

    /// - Parameters:
    ///   - maxBytes: longer input is refused before it is read.
    ///   - maxDepth: the largest number of nested objects and arrays. An empty one inside the deepest is accepted.
    public init(maxBytes: Int = 1 << 20, maxDepth: Int = 32) {
        self.maxBytes = maxBytes
        self.maxDepth = maxDepth
        handle = csimdjson_create(maxBytes, maxDepth)
        view = .allocate(capacity: 1)
    }

    deinit {
        view.deallocate()
        csimdjson_destroy(handle)
    }

    /// Parses `bytes` and calls `body` with the root.
    ///
    /// No cursor may leave `body`. `bytes` must not change during the call, because the text of numbers is read from
    /// them. `body` must not parse with this parser.
    @inlinable
    public func parse<Result, Failure: Error>(
        _ bytes: UnsafeRawBufferPointer, _ body: (JSONCursor) throws(Failure) -> Result
    ) throws(Failure) -> Parsed<Result> {
        check(bytes)
        return try read(bytes, body)
    }

    /// The second half of ``parse(_:_:)``: `bytes` are those of the last ``check(_:)``.
    @inlinable
    public func read<Result, Failure: Error>(
        _ bytes: UnsafeRawBufferPointer, _ body: (JSONCursor) throws(Failure) -> Result
    ) throws(Failure) -> Parsed<Result> {
        let root: JSONCursor
        switch open(bytes) {
        case .success(let cursor): root = cursor
        case .failure(let fault): return .refused(fault)
        }
        return .read(try body(root))
    }

    public enum Parsed<Result> {
        case read(Result)
        case refused(JSONFault)
    }

    /// ``parse(_:_:)`` for bytes in an array.
    @inlinable
    public func parse<Result, Failure: Error>(
        _ bytes: [UInt8], _ body: (JSONCursor) throws(Failure) -> Result
    ) throws(Failure) -> Parsed<Result> {
        try bytes.withUnsafeBufferPointer { (buffer) throws(Failure) in
            try parse(UnsafeRawBufferPointer(buffer), body)
        }
    }

    /// Checks the whole document, to be read by ``read(_:_:)`` until the next check.
    public func check(_ bytes: UnsafeRawBufferPointer) {
        // simdjson skips a mark and then counts offsets from behind it.
        if bytes.count >= 2, bytes[0] >= 0xEF, Self.beginsWithMark(bytes) {
            refusal = JSONFault(.byteOrderMark)
            return
        }
        guard let handle else { return }
        let status = csimdjson_parse(handle, bytes.baseAddress, bytes.count, &tape)
        refusal = status == CSIMDJSON_OK ? nil : fault(Self.code(of: status), in: bytes)
    }

    @usableFromInline
    func open(_ bytes: UnsafeRawBufferPointer) -> Swift.Result<JSONCursor, JSONFault> {
        if let refusal { return .failure(refusal) }
        guard let handle, let words = tape.tape, let strings = tape.strings else {
            return .failure(JSONFault(.outOfMemory))
        }
        view.initialize(
            to: JSONView(parser: handle, tape: words, strings: UnsafeRawPointer(strings), source: bytes))
        return .success(JSONCursor(view: UnsafePointer(view), index: 1))
    }

    /// UTF-8's mark, or one of UTF-16.
    private static func beginsWithMark(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch (bytes[0], bytes[1]) {
        case (0xEF, 0xBB): bytes.count > 2 && bytes[2] == 0xBF
        case (0xFE, 0xFF), (0xFF, 0xFE): true
        default: false
        }
    }

    private func fault(_ code: JSONFault.Code, in bytes: UnsafeRawBufferPointer) -> JSONFault {
        switch code {
        case .empty, .tooLong, .outOfMemory, .byteOrderMark: JSONFault(code)
        case .notUTF8: JSONFault(code, byte: JSONBreak.brokenUTF8(in: bytes) ?? 0)
        case .tooDeep: JSONFault(code, byte: JSONBreak.position(in: bytes, maxDepth: maxDepth))
        case .badString, .unclosedString:
            // simdjson reports an open string and a control character before broken UTF-8.
            if let byte = JSONBreak.brokenUTF8(in: bytes) {
                JSONFault(.notUTF8, byte: byte)
            } else {
                JSONFault(code, byte: JSONBreak.position(in: bytes, maxDepth: .max))
            }
        case .badNumber, .badStructure: JSONFault(code, byte: JSONBreak.position(in: bytes, maxDepth: .max))
        }
    }

    private static func code(of status: csimdjson_status) -> JSONFault.Code {
        switch status {
        case CSIMDJSON_EMPTY: .empty
        case CSIMDJSON_TOO_LONG: .tooLong
        case CSIMDJSON_TOO_DEEP: .tooDeep
        case CSIMDJSON_NO_MEMORY: .outOfMemory
        case CSIMDJSON_NOT_UTF8: .notUTF8
        case CSIMDJSON_BAD_STRING: .badString
        case CSIMDJSON_UNCLOSED_STRING: .unclosedString
        case CSIMDJSON_BAD_NUMBER: .badNumber
        default: .badStructure
        }
    }
}

/// The buffers of the current document: a trivial value, written by the parser, read by cursors.
@usableFromInline
struct JSONView {
    @usableFromInline let parser: OpaquePointer
    /// simdjson's tape: the type in the top 8 bits of a word, 56 bits of data.
    @usableFromInline let tape: UnsafePointer<UInt64>
    /// Unescaped strings, each after its length in 4 bytes.
    @usableFromInline let strings: UnsafeRawPointer
    @usableFromInline let source: UnsafeRawBufferPointer

    @usableFromInline
    func offset(at index: Int) -> Int {
        csimdjson_offset(parser, index)
    }
}
