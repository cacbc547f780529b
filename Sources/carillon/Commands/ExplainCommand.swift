// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Recording
import Redis
import Worker

/// `carillon explain`: the result that records would have, for every user and device. It sends and changes nothing.
struct ExplainCommand: Command {
    static let spec = CommandSpec(
        name: "explain", summary: "the decision on an event, per user and device: every step with its inputs",
        details: """
            Reads records (one JSON object per line, of either input topic; also lines of `carillon record`), reads the present state
            in Redis, and decides as the worker does. It sends and changes nothing. Verdicts are those of push.results if APNs accepts
            and connections acknowledge; there are also dead_letter, state_change and duplicate. --at changes the clock, but presence
            and marks are always the present ones.

            Fields that no reader knows have no effect, and are named.

            exit codes: 0 explained (also bad records, as such), 1 Redis or the file is not readable (with --strict: or a record is bad
            or has unknown fields), 64 bad usage, 78 bad configuration
            """,
        options: [
            CommandSpec.config,
            .value("event", "FILE", "the records; - for standard input", required: true),
            .value("members", "N", "members of a group that are looked at (20)"),
            .value("at", "TIME", "the moment to decide for: now, sent (each record's own sent_ms), or Unix ms (now)"),
            .flag("strict", "a record that is bad or has unknown fields counts as a failure"),
            CommandSpec.json,
        ])

    private let configPath: String
    private let eventPath: String
    private let membersMax: Int
    private let isStrict: Bool
    private let isJSON: Bool
    private let moment: Explainer.Moment

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        configPath = arguments.string("config") ?? ""
        eventPath = arguments.string("event") ?? ""
        membersMax = try arguments.int("members", default: 20, in: 1...100_000)
        isStrict = arguments.has("strict")
        isJSON = arguments.has("json")
        switch arguments.string("at") ?? "now" {
        case "now": moment = .now
        case "sent": moment = .sent
        case let text:
            guard let ms = Int64(text), ms > 0, ms <= 253_402_300_799_999 else {
                throw Arguments.UsageError(message: "--at needs now, sent or Unix milliseconds; not \"\(text)\"")
            }
            moment = .at(ms)
        }
    }

    func run() async -> ExitCode {
        guard let configuration = ConfigurationLoading.load(configPath, checkingFiles: false) else {
            return .configuration
        }
        let reader: LineReader
        do throws(LineReader.Fault) {
            reader = try LineReader(path: eventPath)
        } catch {
            Terminal.err("carillon explain: \(error.message)\n")
            return .failed
        }
        guard let store = await RedisOpening.open(configuration, for: "explain") else { return .failed }
        let code = await explainAll(reader, Explainer(configuration, store: store, membersMax: membersMax))
        await store.close()
        return code
    }

    private func explainAll(_ reader: LineReader, _ explainer: Explainer) async -> ExitCode {
        var count = 0
        var isWrapped = false
        var isFlawed = false
        while true {
            let line: [UInt8]
            do throws(LineReader.Fault) {
                guard let next = try reader.next() else { break }
                line = next
            } catch {
                Terminal.err("carillon explain: \(error.message)\n")
                return .failed
            }
            do throws(RedisFault) {
                let report = try await explainer.explain(
                    RecordLine.value(in: line), place: "line \(reader.number)", at: moment)
                if report.isBad || !report.unknownFields.isEmpty { isFlawed = true }
                if !isJSON, count > 0 { Terminal.out("\n") }
                Terminal.out(
                    asJSON: isJSON, json: ExplanationText.json(report),
                    text: ExplanationText.people(report, place: "line \(reader.number)", membersMax: membersMax))
                if isJSON, report.isCut {
                    Terminal.err("carillon explain: line \(reader.number): only \(membersMax) members; see --members\n")
                }
            } catch {
                Terminal.err("carillon explain: line \(reader.number): Redis: \(error)\n")
                return .failed
            }
            if count == 0 { isWrapped = Self.isBegun(line) }
            count += 1
        }
        if isWrapped, count > 1 {
            Terminal.err(
                "carillon explain: line 1 is the beginning of an object: one record per line is wanted "
                    + "(jq -c . FILE puts a record on one line)\n")
        }
        if count == 0 { Terminal.err("carillon explain: \(eventPath) contains no record\n") }
        return count > 0 && !(isStrict && isFlawed) ? .done : .failed
    }

    /// The line begins an object and does not end it.
    private static func isBegun(_ line: [UInt8]) -> Bool {
        let text = line.filter { $0 > 0x20 }
        return text.first == UInt8(ascii: "{") && text.last != UInt8(ascii: "}")
    }
}
