// SPDX-License-Identifier: Apache-2.0
/// A command's reply before it is written as RESP2 or RESP3.
indirect enum Reply: Equatable {
    case status(String)
    case error(RedisError)
    case number(Int64)
    case bulk(Bytes)
    case double(Double)
    case null
    /// `*-1` in RESP2.
    case nullArray
    case array([Reply])
    /// Keys and values, one after the other.
    case map([Reply])
    case set([Reply])
    /// A text for people.
    case verbatim(String)

    static let ok = Reply.status("OK")

    static func bulk(_ text: String) -> Reply { .bulk(Bytes(text)) }

    static func integer(_ number: some BinaryInteger) -> Reply { .number(Int64(number)) }

    static func bulk(_ bytes: Bytes?) -> Reply { bytes.map { .bulk($0) } ?? .null }

    var isError: Bool { if case .error = self { true } else { false } }

    /// How replies are written to a client.
    struct Form {
        /// 2 or 3.
        var version = 2
        /// See `digits(of:isShortest:)`.
        var isShortest = false
    }

    func write(_ form: Form, to out: inout Bytes) {
        let isThree = form.version == 3
        switch self {
        case .status(let text): out += Bytes("+\(RedisError(text).line)\r\n")
        case .error(let error): out += Bytes("-\(error.line)\r\n")
        case .number(let number): out += Bytes(":\(number)\r\n")
        case .bulk(let bytes): Self.write("$", bytes, to: &out)
        case .double(let number):
            let text = digits(of: number, isShortest: form.isShortest)
            if isThree { out += Bytes(",\(text)\r\n") } else { Self.write("$", Bytes(text), to: &out) }
        case .null: out += Bytes(isThree ? "_\r\n" : "$-1\r\n")
        case .nullArray: out += Bytes(isThree ? "_\r\n" : "*-1\r\n")
        case .array(let elements): Self.write("*", elements.count, elements, form, to: &out)
        case .map(let elements):
            Self.write(isThree ? "%" : "*", isThree ? elements.count / 2 : elements.count, elements, form, to: &out)
        case .set(let elements): Self.write(isThree ? "~" : "*", elements.count, elements, form, to: &out)
        case .verbatim(let text):
            if isThree {
                Self.write("=", Bytes("txt:" + text), to: &out)
            } else {
                Self.write("$", Bytes(text), to: &out)
            }
        }
    }

    private static func write(_ sign: String, _ bytes: Bytes, to out: inout Bytes) {
        out += Bytes("\(sign)\(bytes.count)\r\n")
        out += bytes
        out += [13, 10]
    }

    private static func write(_ sign: String, _ count: Int, _ elements: [Reply], _ form: Form, to out: inout Bytes) {
        out += Bytes("\(sign)\(count)\r\n")
        for element in elements { element.write(form, to: &out) }
    }
}
