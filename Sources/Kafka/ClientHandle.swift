// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc
import Telemetry

/// Owns one `rd_kafka_t`, its wake-up and its callbacks' context.
///
/// Unchecked: librdkafka's handle is thread-safe, and this class has no state that changes after `init`.
final class ClientHandle: @unchecked Sendable {
    let raw: OpaquePointer
    let wake: WakeFD
    private let context: Unmanaged<CallbackContext>

    init(_ configuration: KafkaConfiguration, role: KafkaRole, prepare: (OpaquePointer) -> Void) throws(KafkaFault) {
        let wake = try WakeFD()
        let conf = try configuration.native(for: role)
        let context = Unmanaged.passRetained(CallbackContext(log: configuration.log))
        rd_kafka_conf_set_opaque(conf, context.toOpaque())
        rd_kafka_conf_set_log_cb(conf, logCallback)
        prepare(conf)
        let kind = role == .consumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER
        var made: OpaquePointer?
        let why = withErrorText { text, capacity in
            made = rd_kafka_new(kind, conf, text, capacity)
            return made != nil
        }
        guard let made else {
            // On failure the configuration is still ours.
            rd_kafka_conf_destroy(conf)
            context.release()
            throw .creation(KafkaFault.withCure(why ?? "no reason given"))
        }
        self.raw = made
        self.wake = wake
        self.context = context
    }

    var callbacks: CallbackContext { context.takeUnretainedValue() }

    /// Destroys on a separate thread: in 2.0.2 this can hang, for example after a consumed topic was deleted (#4724),
    /// and a hanging thread at exit is better than a hanging worker.
    deinit {
        nonisolated(unsafe) let raw = raw
        nonisolated(unsafe) let context = context
        let wake = wake
        let destroy: @Sendable () -> Void = {
            rd_kafka_destroy_flags(raw, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
            // No callback and no wake-up can come any more.
            context.release()
            withExtendedLifetime(wake) {}
        }
        if !runDetached(destroy) { destroy() }
    }

    /// The reason if the client has failed permanently.
    var fatalError: KafkaError? {
        // Asked after each poll. Without a text it is one atomic load.
        if rd_kafka_fatal_error(raw, nil, 0) == RD_KAFKA_RESP_ERR_NO_ERROR { return nil }
        var code = RD_KAFKA_RESP_ERR_NO_ERROR
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer -> String? in
            buffer.initialize(repeating: 0)
            guard let base = buffer.baseAddress else { return nil }
            code = rd_kafka_fatal_error(raw, base, buffer.count)
            return code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : String(cString: base)
        }
        return text.map { KafkaError(code, text: $0, isFatal: true) }
    }
}

/// The object behind the opaque pointer of librdkafka's callbacks.
///
/// `log` is immutable and used from any thread; `client` only inside `poll`, on the owner's thread.
final class CallbackContext {
    let log: KafkaLogSink?
    weak var client: NativeGroupClient?

    init(log: KafkaLogSink?) { self.log = log }

    static func from(_ opaque: UnsafeMutableRawPointer?) -> CallbackContext? {
        opaque.map { Unmanaged<CallbackContext>.fromOpaque($0).takeUnretainedValue() }
    }
}

private let logCallback: @convention(c) (OpaquePointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Void =
    {
        raw, level, facility, text in
        guard let raw, let text, let log = CallbackContext.from(rd_kafka_opaque(raw))?.log else { return }
        let line = String(cString: text)
        // One table of options serves both roles, so this warning has no meaning.
        if line.contains("property and will be ignored by") { return }
        log(KafkaLogLine(level: level, facility: facility.map { String(cString: $0) } ?? "", text: line))
    }
