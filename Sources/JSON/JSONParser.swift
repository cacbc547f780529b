import CSimdjson

/// Reads JSON documents one after another with reused buffers: one per thread.
///
/// simdjson checks the whole document (structure, UTF-8, escapes, depth) and produces a tape, which ``JSONCursor``
/// walks without C calls. Buffers grow to the longest document, at most about 16 times `maxBytes`, and remain.
public final class JSONParser {
    public let maxBytes: Int
    private let handle: OpaquePointer?
    private let view: UnsafeMutablePointer<JSONView>

    /// - Parameters:
    /// - maxBytes: longer input is refused before it is read.
    /// - maxDepth: the largest number of nested objects and arrays. An empty one inside the deepest is accepted.
    public init(maxBytes: Int = 1 << 20, maxDepth: Int = 32) {
        self.maxBytes = maxBytes
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
        let root: JSONCursor
        switch begin(bytes) {
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

    @usableFromInline
    func begin(_ bytes: UnsafeRawBufferPointer) -> Swift.Result<JSONCursor, JSONFault> {
        guard let handle else { return .failure(JSONFault(.outOfMemory)) }
        var tape = csimdjson_tape()
        let status = csimdjson_parse(handle, bytes.baseAddress, bytes.count, &tape)
        guard status == CSIMDJSON_OK, let words = tape.tape, let strings = tape.strings else {
            return .failure(JSONFault(Self.code(of: status)))
        }
        view.initialize(
            to: JSONView(parser: handle, tape: words, strings: UnsafeRawPointer(strings), source: bytes))
        return .success(JSONCursor(view: UnsafePointer(view), index: 1))
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
