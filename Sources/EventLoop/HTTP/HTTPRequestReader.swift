/// Reads HTTP/1.1 requests (RFC 9112) from bytes as they come. A plain value: bytes in, a step out.
///
/// Strict where leniency lets two readers of one stream disagree: lines end with CR LF, no folded or repeated fields of
/// meaning, no transfer coding. A request may have 8 KB of head and 4 KB of body, which is dropped.
struct HTTPRequestReader {
    enum Step: Equatable {
        /// The request is not whole yet.
        case more
        case request(HTTPRequestHead)
        /// The connection ends after this answer: what follows cannot be told apart.
        case refused(status: Int, String)
    }

    static let headBytesMax = 8 * 1024
    static let bodyBytesMax = 4 * 1024
    /// What may lie here unread: one request and the beginning of the next.
    static let heldBytesMax = 2 * (headBytesMax + bodyBytesMax)

    private var held: [UInt8] = []
    /// Up to here no end of a head was found.
    private var searched = 0
    private var isRefused = false

    /// Takes what came; of a flood, only so much as makes `next` refuse it.
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard held.count <= Self.heldBytesMax, !isRefused else { return }
        held.append(contentsOf: bytes.prefix(Self.heldBytesMax + 1 - held.count))
    }

    /// The next request, if it is whole.
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
        dropEmptyLines()
        guard let end = headEnd() else {
            return held.count > Self.headBytesMax ? .refused(status: 431, "more than 8 KB of headers\n") : .more
        }
        guard end <= Self.headBytesMax else { return .refused(status: 431, "more than 8 KB of headers\n") }
        let head: HTTPRequestHead
        let bodyBytes: Int
        do throws(HTTPRequestHead.Refusal) {
            (head, bodyBytes) = try HTTPRequestHead.read(held[..<end])
        } catch {
            return .refused(status: error.status, error.words)
        }
        guard bodyBytes <= Self.bodyBytesMax else { return .refused(status: 413, "more than 4 KB of body\n") }
        guard held.count - end >= bodyBytes else { return .more }
        held.removeFirst(end + bodyBytes)
        searched = 0
        return .request(head)
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

    /// The first byte after the empty line that ends the head. Each byte is looked at once, however small the pieces.
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
