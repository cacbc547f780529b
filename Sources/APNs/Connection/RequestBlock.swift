// SPDX-License-Identifier: Apache-2.0
import Digits
import HTTP2

/// The result of giving a request to a session.
enum Submission: Equatable {
    case sent(Int32)
    /// This connection accepts no more requests.
    case noMoreRequests
    /// A value is not valid in a header. It was checked before, so this is our own mistake.
    case unfit
}

/// The header list of one connection's requests. Each push rewrites only the differing fields.
///
/// There are eight shapes: with and without `apns-expiration`, `apns-collapse-id` and `apns-channel-id`. A connection keeps one
/// block for each.
final class RequestBlock {
    private var list: HeaderList
    private let path: Int
    private let authorization: Int?
    /// Nil of a broadcast.
    private let topic: Int?
    /// Nil of a push to a device.
    private let channel: Int?
    private let type: Int
    private let priority: Int
    private let id: Int
    private let length: Int
    private let expiration: Int?
    private let collapseID: Int?
    private var writtenHeaders: PushHeaders?
    private var writtenToken: ProviderToken?
    private var isFirst = true
    private static let prefix: StaticString = "/3/device/"

    static let shapes = 8

    /// The index of the block for these headers: below `shapes`.
    static func shape(of headers: PushHeaders) -> Int {
        (headers.expirationSeconds == nil ? 0 : 1) + (headers.collapseID == nil ? 0 : 2)
            + (headers.channel == nil ? 0 : 4)
    }

    init(authority: String, headers: PushHeaders, token: ProviderToken?) throws(HTTP2Fault) {
        list = HeaderList()
        try list.append(":method", "POST")
        try list.append(":scheme", "https")
        try list.append(":authority", authority)
        // nghttp2 never puts :path or authorization into the HPACK table, as Apple asks.
        path = try list.append(":path", "/3/device/0")
        if let token {
            authorization = try list.append("authorization", token.header)
        } else {
            authorization = nil
        }
        if let value = headers.channel {
            topic = nil
            channel = try list.append("apns-channel-id", value.id)
        } else {
            topic = try list.append("apns-topic", headers.common.topicBytes)
            channel = nil
        }
        type = try list.append("apns-push-type", headers.common.typeBytes)
        priority = try list.append("apns-priority", headers.common.priorityBytes)
        // A broadcast names its request by another header.
        id = try list.append(
            headers.channel == nil ? "apns-id" : "apns-request-id", "00000000-0000-0000-0000-000000000000")
        // Optional in HTTP/2, but without it some proxies hold the request until its last byte. Differs with each push.
        length = try list.append("content-length", "0", indexing: .never)
        if let seconds = headers.expirationSeconds {
            expiration = try list.append("apns-expiration", String(seconds))
        } else {
            expiration = nil
        }
        if let value = headers.collapseID {
            collapseID = try list.append("apns-collapse-id", value)
        } else {
            collapseID = nil
        }
        writtenHeaders = headers
        writtenToken = token
    }

    /// Submits a push. The headers must have the shape of this block.
    func submit(_ push: borrowing Push, token: ProviderToken?, to session: HTTP2Session, tag: UInt64) -> Submission {
        guard fill(push, token: token) else { return .unfit }
        do {
            let stream = try session.submitRequest(list, body: push.payload, tag: tag)
            if isFirst { becomeSeasoned() }
            return .sent(stream)
        } catch {
            return .noMoreRequests
        }
    }

    private func fill(_ push: borrowing Push, token: ProviderToken?) -> Bool {
        if channel == nil {
            // Hexadecimal digits by construction, so neither needs another check.
            list.write(path, count: Self.prefix.utf8CodeUnitCount + push.token.count) { target in
                target.copyMemory(from: Self.prefix.utf8Start, byteCount: Self.prefix.utf8CodeUnitCount)
                push.token.write(to: target + Self.prefix.utf8CodeUnitCount)
            }
        } else if let value = push.headers.channel {
            // `PushChannel` has checked it.
            write(value.path, to: path)
        }
        list.write(id, count: PushID.textCount) { push.id.write(to: $0) }
        let bytes = UInt64(push.payload.count)
        list.write(length, count: Decimal.count(bytes)) { Decimal.write(bytes, to: $0) }
        var isFit = true
        if let authorization, let token, token !== writtenToken {
            isFit = list.set(authorization, token.header) && isFit
            writtenToken = token
        }
        if push.headers !== writtenHeaders { isFit = fill(push.headers) && isFit }
        return isFit
    }

    private func fill(_ headers: PushHeaders) -> Bool {
        var isFit = true
        if headers.common !== writtenHeaders?.common {
            if let topic { isFit = list.set(topic, headers.common.topicBytes) }
            isFit = list.set(type, headers.common.typeBytes) && isFit
            isFit = list.set(priority, headers.common.priorityBytes) && isFit
        }
        if let expiration, let seconds = headers.expirationSeconds {
            let seconds = UInt64(seconds)
            list.write(expiration, count: Decimal.count(seconds)) { Decimal.write(seconds, to: $0) }
        }
        // `PushHeaders` and `PushChannel` have checked them.
        if let collapseID, let value = headers.collapseID { write(value, to: collapseID) }
        if let channel, let value = headers.channel { write(value.id, to: channel) }
        writtenHeaders = headers
        return isFit
    }

    private func write(_ value: [UInt8], to field: Int) {
        list.write(field, count: value.count) { target in
            value.withUnsafeBytes { bytes in
                if let start = bytes.baseAddress { target.copyMemory(from: start, byteCount: bytes.count) }
            }
        }
    }

    /// "apns-id, apns-expiration, apns-collapse-id: incremental indexing the first time, literal without indexing
    /// afterwards" (Apple, Sending notification requests to APNs).
    private func becomeSeasoned() {
        isFirst = false
        list.setIndexing(id, .never)
        if let expiration { list.setIndexing(expiration, .never) }
        if let collapseID { list.setIndexing(collapseID, .never) }
    }
}
