// SPDX-License-Identifier: Apache-2.0
struct Fault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

struct Options {
    var endpoint = "https://api.push.apple.com"
    var caFile: String?
    var key = ""
    var keyID = ""
    var teamID = ""
    var topic = ""
    var token = ""
    var texts: [String] = []

    init(_ arguments: some Sequence<String>) throws {
        var rest = arguments.makeIterator()
        while let name = rest.next() {
            guard let value = rest.next() else { throw Fault("\(name) wants a value") }
            switch name {
            case "--endpoint": endpoint = value
            case "--ca-file": caFile = value
            case "--key": key = value
            case "--key-id": keyID = value
            case "--team-id": teamID = value
            case "--topic": topic = value
            case "--token": token = value
            case "--text": texts.append(value)
            default: throw Fault("unknown option \(name)")
            }
        }
        if key.isEmpty || topic.isEmpty || token.isEmpty || texts.isEmpty {
            throw Fault("--key, --key-id, --team-id, --topic, --token and --text are required")
        }
    }
}
