import CRdkafka
import Glibc
import Telemetry

/// Owns one `rd_kafka_t`, its wake-up and the context its callbacks see.
///
/// librdkafka's handle is thread-safe; this class adds no state that changes after `init`, hence unchecked.
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

    /// Destroys on a thread of its own: in 2.0.2 this can hang, e.g. when a consumed topic was deleted (#4724), and a
    /// hanging thread at exit is cheaper than a hanging worker.
    deinit {
        nonisolated(unsafe) let raw = raw
        nonisolated(unsafe) let context = context
        let wake = wake
        let destroy: @Sendable () -> Void = {
            rd_kafka_destroy_flags(raw, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
            // Only now can no callback and no wake-up come any more.
            context.release()
            withExtendedLifetime(wake) {}
        }
        if !runDetached(destroy) { destroy() }
    }

    /// Whether the client has died for good, with the reason.
    var fatalError: KafkaError? {
        // Asked after each poll: without a text it is one atomic load.
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

/// What librdkafka's callbacks recover from their opaque pointer.
///
/// `log` is immutable and used from any thread; `consumer` only inside `poll`, on the owner's thread.
final class CallbackContext {
    let log: KafkaLogSink?
    weak var consumer: KafkaConsumer?

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
        // One options table serves both roles, so this warning says nothing.
        if line.contains("property and will be ignored by") { return }
        log(KafkaLogLine(level: level, facility: facility.map { String(cString: $0) } ?? "", text: line))
    }
