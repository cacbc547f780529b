// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The parts of an open recipient (`OpenRecipients`) that its journal has replaced. This version only reads them.
struct EarlierParts {
    private var done: [String] = []
    private var counts: [UInt8] = []
    private var trace: [UInt8] = []

    /// - Returns: false for another letter.
    mutating func take(_ part: PartReader.Part) -> Bool {
        switch part.letter {
        case UInt8(ascii: "e"): done.append(String(decoding: part.content, as: UTF8.self))
        case UInt8(ascii: "n"): counts = Array(part.content)
        case UInt8(ascii: "r"): trace = Array(part.content)
        default: return false
        }
        return true
    }

    /// - Returns: nil if there were no such parts.
    func journal(writtenMs: Int64) -> Journal? {
        if done.isEmpty, counts.isEmpty, trace.isEmpty { return nil }
        return Journal(done: done, counts: counts, trace: trace, writtenMs: writtenMs)
    }
}
