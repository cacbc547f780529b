import COpenSSL

extension CryptoFault {
    /// A fault of OpenSSL itself, with the library's last reason; empties the thread's error queue, since a stale
    /// entry would be blamed on the next TLS call of this thread.
    static func library(_ what: String) -> CryptoFault {
        CryptoFault(.library, "\(what): \(lastReason())")
    }

    /// Takes the oldest reason of this thread's queue and empties the queue.
    static func lastReason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0, let text = ERR_reason_error_string(code) else { return "no reason given" }
        return String(cString: text)
    }
}
