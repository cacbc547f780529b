// SPDX-License-Identifier: Apache-2.0
import COpenSSL

extension CryptoFault {
    /// A fault of OpenSSL with the library's last reason. Clears the thread's error queue, because a stale entry would
    /// be attributed to the thread's next TLS call.
    static func library(_ what: String) -> CryptoFault {
        CryptoFault(.library, "\(what): \(lastReason())")
    }

    /// Takes the oldest reason of this thread's queue and clears the queue.
    static func lastReason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else { return "no reason given" }
        return String(cString: text)
    }
}
