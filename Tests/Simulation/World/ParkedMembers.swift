// SPDX-License-Identifier: Apache-2.0
/// The recipients in a record of `carillon.parked` or `carillon.chunks`, read without the worker's code.
///
/// A line of JSON is followed by the open recipients, if there is more than the whole event, and by the event's own bytes. A
/// recipient is its length and then parts of a letter, a length and bytes: `u` has its id, `i` its place in `to.uids`.
enum ParkedMembers {
    /// - Returns: nil for all recipients of the event.
    static func uids(in value: [UInt8]) -> [String]? {
        let line = value.prefix { $0 != UInt8(ascii: "\n") }
        guard let head = JudgeJSON(Array(line)) else { return nil }
        if let uids = head["uids"]?.list?.compactMap(\.text) ?? head["uid"]?.text.map({ [$0] }) { return uids }
        guard let count = head["open"]?.number, count > 0 else {
            // A chunk that waits whole: its members were handed on by its record.
            return head["part"] == nil ? nil : []
        }
        let rest = value.dropFirst(line.count + 1)
        let named = JudgeJSON(Array(rest.dropFirst(Int(count))))?["to"]?["uids"]?.list?.map { $0.text ?? "" } ?? []
        return recipients(rest.prefix(Int(count)), named)
    }

    private static func recipients(_ bytes: ArraySlice<UInt8>, _ named: [String]) -> [String] {
        var (rest, uids) = (bytes, [String]())
        while let size = number(&rest) {
            var entry = rest.prefix(size)
            rest = rest.dropFirst(size)
            while let letter = entry.popFirst(), let length = number(&entry) {
                var content = entry.prefix(length)
                entry = entry.dropFirst(length)
                if letter == UInt8(ascii: "u") { uids.append(String(decoding: content, as: UTF8.self)) }
                if letter == UInt8(ascii: "i"), let place = number(&content), named.indices.contains(place) {
                    uids.append(named[place])
                }
            }
        }
        return uids
    }

    /// Seven bits a byte, the lowest first; nil at the end.
    static func number(_ bytes: inout ArraySlice<UInt8>) -> Int? {
        var value = 0
        for shift in stride(from: 0, to: 63, by: 7) {
            guard let byte = bytes.popFirst() else { return nil }
            value |= Int(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }
}
