// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import JSON

/// Records each request and its answer: one line per request, before the answer is sent.
///
/// Lines collect in memory and go to the file in one write before each batch of answers. So every answer that a client
/// can have seen has a ledger line. Loop-bound through its simulator.
final class Ledger {
    /// The data of one line.
    struct Record {
        var connection: Int
        var stream: Int32
        var apnsID: ArraySlice<UInt8>
        var fingerprint: String?
        var bytes: Int
        var isObject: Bool
        var status: Int?
        var reason: String?
        var fault: String?
        var answered: Bool
        var delayMs: Int64
    }

    /// Whether anything is recorded.
    let isOn: Bool
    /// Entries in memory, if the mode keeps them.
    private(set) var entries: [LedgerEntry] = []
    /// Set when the file cannot be written. The simulator then stops answering.
    private(set) var fault: SimulatorFault?

    private let fd: Int32
    private let keepsEntries: Bool
    private var writer = JSONWriter(reservingCapacity: 1 << 16)
    private var pending: [UInt8] = []

    init(_ mode: LedgerMode) throws(SimulatorFault) {
        let path: String?
        switch mode {
        case .off: (path, keepsEntries) = (nil, false)
        case .memory: (path, keepsEntries) = (nil, true)
        case .file(let file): (path, keepsEntries) = (file, false)
        case .fileAndMemory(let file): (path, keepsEntries) = (file, true)
        }
        isOn = mode != .off
        guard let path else {
            fd = -1
            return
        }
        fd = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        if fd < 0 { throw SimulatorFault("cannot write the ledger \(path): \(String(cString: strerror(errno)))") }
    }

    deinit {
        flush()
        if fd >= 0 { Glibc.close(fd) }
    }

    /// Adds the line of one request.
    func add(_ record: Record, head: RequestHead, body: [UInt8], nowMs now: Int64) {
        guard isOn else { return }
        if keepsEntries { entries.append(LedgerEntry(record, head: head, body: body, atMs: now)) }
        guard fd >= 0 else { return }
        writer.clear()
        write(record, head: head, body: body, atMs: now)
        writer.withBytes { pending.append(contentsOf: $0) }
        pending.append(0x0A)
        if pending.count > 1 << 20 { flush() }
    }

    /// Writes the collected lines to the file.
    func flush() {
        guard !pending.isEmpty else { return }
        var written = 0
        pending.withUnsafeBytes { bytes in
            while written < bytes.count, fault == nil {
                let count = Glibc.write(fd, bytes.baseAddress?.advanced(by: written), bytes.count - written)
                if count >= 0 {
                    written += count
                } else if errno != EINTR {
                    fault = SimulatorFault("cannot write to the ledger: \(String(cString: strerror(errno)))")
                }
            }
        }
        pending.removeAll(keepingCapacity: true)
    }

    /// - Returns: the entries and removes them.
    func takeEntries() -> [LedgerEntry] {
        defer { entries = [] }
        return entries
    }

    private func write(_ record: Record, head: RequestHead, body: [UInt8], atMs: Int64) {
        writer.beginObject()
        writer.member("at_ms", atMs)
        writer.member("conn", Int64(record.connection))
        writer.member("stream", Int64(record.stream))
        writer.key("token")
        text(head[.path].flatMap { RequestCheck.token(path: $0) } ?? [])
        writer.key("apns_id")
        text(record.apnsID)
        writer.key("headers")
        writer.beginObject()
        for field in LedgerEntry.headerFields {
            guard let value = head[field] else { continue }
            writer.key(field.name)
            // A reader of the ledger could send pushes with the token, so only its hash is written.
            if field == .authorization { text(ArraySlice(record.maskedAuthorization.utf8)) } else { text(value) }
        }
        writer.endObject()
        writer.key("payload")
        if record.isObject, record.bytes == body.count { raw(body) } else { text(body[...]) }
        writer.member("bytes", Int64(record.bytes))
        if let status = record.status { writer.member("status", Int64(status)) }
        writer.member("reason", ifPresent: record.reason)
        writer.member("fault", ifPresent: record.fault)
        writer.member("answered", record.answered)
        writer.endObject()
    }

    /// A JSON object on one line. A line break in valid JSON is always insignificant white space.
    private func raw(_ body: [UInt8]) {
        guard body.contains(0x0A) || body.contains(0x0D) else { return writer.raw(body) }
        writer.raw(body.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 })
    }

    /// Text from outside. Invalid UTF-8 is replaced.
    private func text(_ bytes: ArraySlice<UInt8>) {
        if bytes.allSatisfy({ $0 < 0x80 }) {
            bytes.withUnsafeBytes { writer.string($0) }
        } else {
            writer.string(String(decoding: bytes, as: UTF8.self))
        }
    }
}

extension Ledger.Record {
    var maskedAuthorization: String { "bearer sha256:" + (fingerprint ?? "?") }
}
