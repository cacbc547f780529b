// SPDX-License-Identifier: Apache-2.0
import Glibc

extension LinkFault {
    /// Converts an errno value of connect, read or write.
    init(errno code: Int32, _ place: String) {
        let reason: Reason =
            switch code {
            // A full backlog of a unix socket gives EAGAIN, a missing socket ENOENT: nobody accepts the connection.
            case ECONNREFUSED, EAGAIN, ENOENT: .refused
            case EHOSTUNREACH, ENETUNREACH, ENETDOWN, EADDRNOTAVAIL: .unreachable
            case ETIMEDOUT: .timeout
            case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: .reset
            default: .system
            }
        self.init(reason, "\(place): \(systemErrorText(code))")
    }
}
