// SPDX-License-Identifier: Apache-2.0
import CYaml

/// Builds the tree from libyaml's events, and owns the parser.
struct TreeReader: ~Copyable {
    /// Keys are compared and hashed, so their length is limited.
    private static let keyBytesMax = 256

    private let source: String
    private let maxDepth: Int
    /// On the heap, because libyaml keeps pointers into it.
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private(set) var repeatedKeys: [(key: String, mark: YAMLNode.Mark)] = []

    init(source: String, maxDepth: Int) throws(YAMLFault) {
        self.source = source
        self.maxDepth = maxDepth
        parser = .allocate(capacity: 1)
        guard yaml_parser_initialize(parser) != 0 else {
            parser.deallocate()
            throw YAMLFault("out of memory", YAMLNode.Mark(source: source))
        }
    }

    deinit {
        yaml_parser_delete(parser)
        parser.deallocate()
    }

    /// The libyaml events that a tree needs.
    private enum Step {
        case scalar(String, quoted: Bool)
        case beginSequence, endSequence, beginMapping, endMapping
        case streamStart, streamEnd, documentStart, documentEnd
    }

    mutating func document(_ bytes: UnsafeBufferPointer<UInt8>) throws(YAMLFault) -> YAMLNode {
        yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        _ = try next()
        let (first, start) = try next()
        guard case .documentStart = first else { return YAMLNode(.mapping([]), mark: mark(start)) }
        let (step, place) = try next()
        let root = try node(step, place, depth: 1)
        _ = try next()
        let (last, end) = try next()
        guard case .streamEnd = last else { throw fault("a second document begins here; one is read", end) }
        return root
    }

    // `maxDepth` bounds the recursion.
    private mutating func node(_ step: Step, _ place: yaml_mark_t, depth: Int) throws(YAMLFault) -> YAMLNode {
        guard depth <= maxDepth else { throw fault("nested deeper than \(maxDepth)", place) }
        switch step {
        case .scalar(let text, let quoted): return YAMLNode(.scalar(text, quoted: quoted), mark: mark(place))
        case .beginSequence: return try sequence(place, depth: depth)
        case .beginMapping: return try mapping(place, depth: depth)
        case .endSequence, .endMapping, .streamStart, .streamEnd, .documentStart, .documentEnd:
            throw fault("a value is missing", place)
        }
    }

    private mutating func sequence(_ start: yaml_mark_t, depth: Int) throws(YAMLFault) -> YAMLNode {
        var nodes: [YAMLNode] = []
        while true {
            let (step, place) = try next()
            if case .endSequence = step { return YAMLNode(.sequence(nodes), mark: mark(start)) }
            nodes.append(try node(step, place, depth: depth + 1))
        }
    }

    private mutating func mapping(_ start: yaml_mark_t, depth: Int) throws(YAMLFault) -> YAMLNode {
        var entries: [YAMLNode.Entry] = []
        var places: [String: Int] = [:]
        while true {
            let (step, place) = try next()
            if case .endMapping = step { return YAMLNode(.mapping(entries), mark: mark(start)) }
            guard case .scalar(let key, _) = step else { throw fault("a key must be a plain word", place) }
            guard key.utf8.count <= Self.keyBytesMax else {
                throw fault("a key is longer than \(Self.keyBytesMax) bytes", place)
            }
            let (valueStep, valuePlace) = try next()
            let value = try node(valueStep, valuePlace, depth: depth + 1)
            if let index = places[key] {
                repeatedKeys.append((key, mark(place)))
                entries[index].value = value
            } else {
                places[key] = entries.count
                entries.append(YAMLNode.Entry(key: key, keyMark: mark(place), value: value))
            }
        }
    }

    private func next() throws(YAMLFault) -> (Step, yaml_mark_t) {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) != 0 else { throw parserFault() }
        defer { yaml_event_delete(&event) }
        return (try step(event), event.start_mark)
    }

    private func step(_ event: yaml_event_t) throws(YAMLFault) -> Step {
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            try refuse(scalar.anchor, scalar.tag, event.start_mark)
            let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
            return .scalar(text, quoted: scalar.style != YAML_PLAIN_SCALAR_STYLE)
        case YAML_SEQUENCE_START_EVENT:
            try refuse(event.data.sequence_start.anchor, event.data.sequence_start.tag, event.start_mark)
            return .beginSequence
        case YAML_MAPPING_START_EVENT:
            try refuse(event.data.mapping_start.anchor, event.data.mapping_start.tag, event.start_mark)
            return .beginMapping
        case YAML_SEQUENCE_END_EVENT: return .endSequence
        case YAML_MAPPING_END_EVENT: return .endMapping
        case YAML_STREAM_START_EVENT: return .streamStart
        case YAML_STREAM_END_EVENT: return .streamEnd
        case YAML_DOCUMENT_START_EVENT: return .documentStart
        case YAML_DOCUMENT_END_EVENT: return .documentEnd
        case YAML_ALIAS_EVENT: throw fault("aliases (*name) are not supported", event.start_mark)
        default: throw fault("unexpected YAML", event.start_mark)
        }
    }

    private func refuse(
        _ anchor: UnsafeMutablePointer<UInt8>?, _ tag: UnsafeMutablePointer<UInt8>?, _ place: yaml_mark_t
    ) throws(YAMLFault) {
        if anchor != nil { throw fault("anchors (&name) are not supported", place) }
        if tag != nil { throw fault("tags (!name) are not supported", place) }
    }

    private func parserFault() -> YAMLFault {
        var text = parser.pointee.problem.map { String(cString: $0) } ?? "broken YAML"
        if text.hasPrefix("did not find expected") { text += " (is a line indented too much or too little?)" }
        if text.hasPrefix("found character that cannot start") { text += " (indent with blanks, not with tabs)" }
        // Encoding faults have no line, only a position.
        let place = parser.pointee.error == YAML_READER_ERROR ? parser.pointee.mark : parser.pointee.problem_mark
        return fault(text, place)
    }

    private func fault(_ text: String, _ place: yaml_mark_t) -> YAMLFault { YAMLFault(text, mark(place)) }

    /// libyaml counts from 0.
    private func mark(_ place: yaml_mark_t) -> YAMLNode.Mark {
        YAMLNode.Mark(source: source, line: Int(place.line) + 1, column: Int(place.column) + 1)
    }
}
