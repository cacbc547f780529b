// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Glibc

/// Owns one SSL on a connected, non-blocking socket, and classifies OpenSSL's results.
///
/// Every call clears the thread's error queue first, because SSL_get_error reads it.
final class TLSSession {
    /// The result of a step.
    enum Step {
        case bytes(Int)
        case wantsRead
        case wantsWrite
        case ended(LinkFault)
    }

    private let ssl: OpaquePointer
    /// Keeps the ALPN list alive for OpenSSL's callback.
    private let context: SSLContext
    private let requiresALPN: Bool
    /// OpenSSL forbids SSL_shutdown after a fatal fault.
    private var mayShutDown = false

    /// The client's side. It accepts only `peerName`: a DNS name, or an IP address as text.
    init(client: TLSClientContext, fd: Int32, peerName: String) throws(LinkFault) {
        context = client.context
        requiresALPN = client.offersALPN
        ERR_clear_error()
        guard let ssl = SSL_new(client.context.raw) else { throw LinkFault(.system, "cannot make a TLS session") }
        self.ssl = ssl
        SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        // From here on a throw runs deinit, which frees the session.
        guard !peerName.isEmpty, !peerName.utf8.contains(0) else {
            throw LinkFault(.tls, "'\(peerName)' cannot be verified as a host name")
        }
        let isAddress = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), peerName) == 1
        var isReady = SSL_set_fd(ssl, fd) == 1
        if !isAddress {
            ERR_clear_error()
            // SSL_set_tlsext_host_name is a macro for this call. RFC 6066 section 3: no IP address in the server name.
            let named = peerName.withCString {
                SSL_ctrl(
                    ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                    UnsafeMutableRawPointer(mutating: $0))
            }
            isReady = isReady && named == 1 && SSL_set1_host(ssl, peerName) == 1
        }
        guard isReady else {
            throw LinkFault(.tls, "'\(peerName)' cannot be verified as a host name")
        }
        SSL_set_connect_state(ssl)
    }

    /// The server's side of an accepted socket.
    init(server: TLSServerContext, fd: Int32) throws(LinkFault) {
        context = server.context
        requiresALPN = false
        ERR_clear_error()
        guard let ssl = SSL_new(server.context.raw) else { throw LinkFault(.system, "cannot make a TLS session") }
        self.ssl = ssl
        guard SSL_set_fd(ssl, fd) == 1 else { throw LinkFault(.system, "cannot tie TLS to the socket") }
        SSL_set_accept_state(ssl)
    }

    deinit { SSL_free(ssl) }

    /// Continues the handshake. `.bytes(0)` means done: verified, and the protocol is agreed.
    func handshake() -> Step {
        ERR_clear_error()
        let code = SSL_do_handshake(ssl)
        guard code == 1 else { return sort(code, "TLS handshake") }
        if requiresALPN, negotiatedProtocol == nil {
            return .ended(LinkFault(.alpn, "the peer chose none of the protocols offered"))
        }
        mayShutDown = true
        return .bytes(0)
    }

    func read(into space: UnsafeMutableRawBufferPointer) -> Step {
        ERR_clear_error()
        let code = SSL_read(ssl, space.baseAddress, Int32(clamping: space.count))
        return code > 0 ? .bytes(Int(code)) : sort(code, "TLS read")
    }

    /// Writes one record of up to 16 KB.
    func write(_ bytes: UnsafeRawBufferPointer) -> Step {
        ERR_clear_error()
        let code = SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count))
        return code > 0 ? .bytes(Int(code)) : sort(code, "TLS write")
    }

    /// Sends close_notify without waiting for the peer's, because the socket is closed next (RFC 8446 section 6.1).
    func shutDown() {
        guard mayShutDown else { return }
        mayShutDown = false
        ERR_clear_error()
        SSL_shutdown(ssl)
        ERR_clear_error()
    }

    var negotiatedProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &length)
        guard let start, length > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(length)), as: UTF8.self)
    }

    private func sort(_ code: Int32, _ place: String) -> Step {
        let systemError = errno
        switch SSL_get_error(ssl, code) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .ended(LinkFault(.closedByPeer, "the peer closed the TLS stream"))
        case SSL_ERROR_SYSCALL:
            mayShutDown = false
            ERR_clear_error()
            if systemError == 0 { return .ended(LinkFault(.closedByPeer, "\(place): end without close_notify")) }
            return .ended(LinkFault(errno: systemError, place))
        default:
            mayShutDown = false
            return .ended(protocolFault(place))
        }
    }

    private func protocolFault(_ place: String) -> LinkFault {
        let error = takeOpenSSLError()
        let verified = SSL_get_verify_result(ssl)
        switch error?.reason {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return LinkFault(.closedByPeer, "\(place): end without close_notify")
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            let words = X509_verify_cert_error_string(verified).map { String(cString: $0) } ?? "code \(verified)"
            return LinkFault(.certificate, "the peer's certificate did not pass: \(words)")
        case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, SSL_R_NO_APPLICATION_PROTOCOL:
            return LinkFault(.alpn, "no application protocol in common")
        default:
            return LinkFault(.tls, "\(place): \(error?.text ?? "no reason given")")
        }
    }
}
