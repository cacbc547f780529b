// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import Kafka

/// The start or end of a recording, as typed by the user.
enum InputPoint: Equatable {
    case earliest
    case offset(Int64)
    case timeMs(Int64)

    static let forms = "earliest, offset:N, time:MS or a time such as 2026-11-22T14:05:00Z"

    /// - Returns: nil for an unknown form.
    init?(_ text: String) {
        if text == "earliest" {
            self = .earliest
            return
        }
        let words = text.split(separator: ":", maxSplits: 1).flatMap { $0.split(separator: " ", maxSplits: 1) }
        switch (words.first, words.count == 2 ? Int64(words[1]) : nil) {
        case ("offset", let number?) where number >= 0: self = .offset(number)
        case ("time", let number?) where number >= 0: self = .timeMs(number)
        default:
            guard let ms = InstantText.milliseconds(text) else { return nil }
            self = .timeMs(ms)
        }
    }

    /// The value of an option; nil if it is absent.
    static func read(_ arguments: Arguments, _ name: String) throws(Arguments.UsageError) -> InputPoint? {
        guard let text = arguments.string(name) else { return nil }
        guard let point = InputPoint(text) else {
            throw Arguments.UsageError(message: "--\(name) needs \(forms); not \"\(text)\"")
        }
        return point
    }

    var start: KafkaTopicReader.Start {
        switch self {
        case .earliest: .earliest
        case .offset(let offset): .offset(offset)
        case .timeMs(let ms): .timeMs(ms)
        }
    }

    /// Nil if nothing precedes it.
    var end: KafkaMergedReader.End? {
        switch self {
        case .earliest: nil
        case .offset(let offset): .offset(offset)
        case .timeMs(let ms): .timeMs(ms)
        }
    }
}
