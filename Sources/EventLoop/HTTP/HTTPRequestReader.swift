// SPDX-License-Identifier: Apache-2.0
/// Parses HTTP/1.1 requests (RFC 9112) from a stream of bytes. A plain value: bytes in, a step out.
///
/// Strict wherever tolerance would let two readers disagree about a stream: lines end with CR LF, no folded or repeated
/// significant fields, no transfer coding. A request may have 8 KB of head and 4 KB of body, which is ignored.
struct HTTPRequestReader {
    enum Step: Equatable {
        /// The request is incomplete.
        case more
        case request(HTTPRequestHead)
        /// The connection ends after this answer, because the rest of the stream cannot be interpreted.
        case refused(status: Int, String)
    }

    static let headBytesMax = 8 * 1024
    static let bodyBytesMax = 4 * 1024
    /// Maximum of unread bytes: one request and the beginning of the next.
    static let heldBytesMax = 2 * (headBytesMax + bodyBytesMax)

    private var held: [UInt8] = []
    /// No end of a head was found up to this position.
    private var searched = 0
    /// A parsed head that waits for its body, and the size of both.
    private var awaited: (head: HTTPRequestHead, bytes: Int)?
    private var isRefused = false

    /// Unread bytes.
    var heldBytes: Int { held.count }

    /// Appends received bytes. If there are too many, it appends only as many as make `next` refuse them.
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard held.count <= Self.heldBytesMax, !isRefused else { return }
        held.append(contentsOf: bytes.prefix(Self.heldBytesMax + 1 - held.count))
    }

    /// The next request, if it is complete.
    mutating func next() -> Step {
        guard !isRefused else { return .more }
        let step = read()
        if case .refused = step {
            isRefused = true
            held = []
        }
        return step
    }

    private mutating func read() -> Step {
        guard held.count <= Self.heldBytesMax else { return .refused(status: 413, "too much at once\n") }
        do throws(HTTPRequestHead.Refusal) {
            if awaited == nil { awaited = try readHead() }
        } catch {
            return .refused(status: error.status, error.words)
        }
        guard let (head, bytes) = awaited, held.count >= bytes else { return .more }
        held.removeFirst(bytes)
        searched = 0
        awaited = nil
        return .request(head)
    }

    /// The next head and the size of the whole request; nil while the head is incomplete.
    private mutating func readHead() throws(HTTPRequestHead.Refusal) -> (head: HTTPRequestHead, bytes: Int)? {
        dropEmptyLines()
        let end = headEnd()
        guard end ?? held.count <= Self.headBytesMax else {
            throw HTTPRequestHead.Refusal(status: 431, words: "more than 8 KB of headers\n")
        }
        guard let end else { return nil }
        let (head, bodyBytes) = try HTTPRequestHead.read(held[..<end])
        guard bodyBytes <= Self.bodyBytesMax else {
            throw HTTPRequestHead.Refusal(status: 413, words: "more than 4 KB of body\n")
        }
        return (head, end + bodyBytes)
    }

    /// RFC 9112 section 2.2: a server ignores an empty line before the request line.
    private mutating func dropEmptyLines() {
        guard held.first == UInt8(ascii: "\r") else { return }
        var count = 0
        while held.count >= count + 2, held[count] == UInt8(ascii: "\r"), held[count + 1] == UInt8(ascii: "\n") {
            count += 2
        }
        guard count > 0 else { return }
        held.removeFirst(count)
        searched = 0
    }

    /// The position after the empty line that ends the head. Each byte is examined once, however small the pieces.
    private mutating func headEnd() -> Int? {
        var index = max(0, searched - 3)
        while index + 3 < held.count {
            if held[index] == 0x0D, held[index + 1] == 0x0A, held[index + 2] == 0x0D, held[index + 3] == 0x0A {
                return index + 4
            }
            index += 1
        }
        searched = held.count
        return nil
    }
}
